// SPDX-License-Identifier: Apache-2.0

// Quickstart: four replicas each bring a gradient; all leave with the sum.
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
	strategy, err := dist.New(dist.Options{Replicas: 4})
	if err != nil {
		return err
	}
	defer strategy.Close()

	// Collect runs the function on every replica at the same time, and gives what each returned.
	sums, err := dist.Collect(ctx, strategy, func(r *dist.Replica) ([]float32, error) {
		id := float32(r.ID())
		gradient := []float32{10 * id, 10*id + 1, 10*id + 2}
		err := dist.AllReduce(r, dist.Sum, gradient)
		return gradient, err
	})
	if err != nil {
		return err
	}
	for id, sum := range sums {
		fmt.Printf("replica %d: %g %g %g\n", id, sum[0], sum[1], sum[2])
	}
	return nil
}
