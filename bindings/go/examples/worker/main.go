// SPDX-License-Identifier: Apache-2.0

// Worker: one of the processes of a job, which TF_CONFIG describes. Its replicas and those of all others, whatever language
// they are written in, add up their numbers.
//
//	dist-launch -n 2 --replicas 2 -- ./worker
package main

import (
	"context"
	"fmt"
	"log"

	"libdist.example/dist"
)

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	strategy, err := dist.New(dist.Options{Kind: dist.MultiWorkerMirrored})
	if err != nil {
		return err
	}
	defer strategy.Close()

	return strategy.Run(ctx, func(r *dist.Replica) error {
		number := []float64{float64(r.ID() + 1)}
		if err := dist.AllReduce(r, dist.Sum, number, dist.Tag("numbers")); err != nil {
			return err
		}
		fmt.Printf("replica %d of %d: %g\n", r.ID(), r.NumReplicas(), number[0])
		return nil
	})
}
