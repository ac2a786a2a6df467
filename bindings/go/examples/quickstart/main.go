// SPDX-License-Identifier: Apache-2.0

// Quickstart sums the gradients of four replicas; each one receives the result.
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

	// Collect runs the function on all replicas at the same time and returns their results.
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
