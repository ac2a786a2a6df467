// SPDX-License-Identifier: Apache-2.0

// Failure shows how a failing replica appears to the caller and to its peers, and how a context cancels
// replicas that wait for each other.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"

	"libdist.example/dist"
)

var errBadRow = errors.New("row 7 of the data is broken")

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	strategy, err := dist.New(dist.Options{Replicas: 4})
	if err != nil {
		return err
	}
	defer strategy.Close()

	// Replica 2 fails before the collective that the others wait in. They get an error that names it, and Run
	// returns its original error.
	peers := make([]error, strategy.NumReplicas())
	err = strategy.Run(ctx, func(r *dist.Replica) error {
		if r.ID() == 2 {
			return errBadRow
		}
		peers[r.ID()] = dist.AllReduce(r, dist.Sum, []float32{1, 2, 3}, dist.Tag("gradient"))
		return peers[r.ID()]
	})
	fmt.Println("run:", err)
	fmt.Println("is it the replica's own error?", err == errBadRow)
	var report *dist.Error
	if errors.As(peers[0], &report) {
		fmt.Printf("replica 0: %s, replica %d failed in %q\n", report.Code.String(), report.Replica, report.Tag)
	}

	// When the context is cancelled, replicas waiting in a collective return. Here, one of them never arrives.
	short, cancel := context.WithCancel(ctx)
	err = strategy.Run(short, func(r *dist.Replica) error {
		if r.ID() == 0 {
			cancel()
			<-short.Done()
			return short.Err()
		}
		return r.Barrier()
	})
	fmt.Println("cancelled:", errors.Is(err, context.Canceled))

	// After each failure, the strategy can be used again.
	return strategy.Run(ctx, func(r *dist.Replica) error { return r.Barrier() })
}
