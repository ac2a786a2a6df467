// SPDX-License-Identifier: Apache-2.0

// Allreduce sums a gradient over four replicas, and shows what a failing replica looks like from outside and
// from its peers.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"libdist.example/dist"
)

var errBadRow = errors.New("row 7 of the data is broken")

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	strategy, err := dist.New(dist.Options{Replicas: 4})
	if err != nil {
		return err
	}
	defer strategy.Close()

	// Every replica brings its gradient; every replica holds the sum afterwards.
	sums := make([][]float32, strategy.NumReplicas())
	err = strategy.Run(ctx, func(r *dist.Replica) error {
		gradient := []float32{1, float32(r.ID()), 0.5}
		if err := dist.AllReduce(r, dist.Sum, gradient, dist.Tag("gradient")); err != nil {
			return err
		}
		sums[r.ID()] = gradient
		return nil
	})
	if err != nil {
		return err
	}
	for id, sum := range sums {
		fmt.Printf("replica %d: %v\n", id, sum)
	}

	// Replica 2 fails before the collective that the others wait in: they get an error that names it, and
	// Run returns its own error.
	peers := make([]error, strategy.NumReplicas())
	err = strategy.Run(ctx, func(r *dist.Replica) error {
		if r.ID() == 2 {
			return errBadRow
		}
		peers[r.ID()] = dist.AllReduce(r, dist.Sum, []float32{1, 2, 3}, dist.Tag("gradient"))
		return peers[r.ID()]
	})
	fmt.Println("run:", err)
	var report *dist.Error
	if errors.As(peers[0], &report) {
		fmt.Printf("replica 0: %s, replica %d failed\n", report.Code.String(), report.Replica)
	}
	return nil
}
