// SPDX-License-Identifier: Apache-2.0

// variables.c in Go: a mirrored variable, whose copies are equal, and a counter, of which each replica changes its own
// copy.
package main

import (
	"context"
	"fmt"
	"log"

	"libdist.example/dist"
)

func use(ctx context.Context) error {
	strategy, err := dist.New(dist.Options{Replicas: 2})
	if err != nil {
		return err
	}
	defer strategy.Close()
	w, err := strategy.NewVariable(dist.Scalar(0.0),
		&dist.VariableOptions{Name: "w", Aggregation: dist.AggregationSum})
	if err != nil {
		return err
	}
	defer w.Close()
	seen, err := strategy.NewVariable(dist.Scalar(0.0), &dist.VariableOptions{
		Name: "seen", Aggregation: dist.AggregationSum, Synchronization: dist.SynchronizationOnRead})
	if err != nil {
		return err
	}
	defer seen.Close()

	err = strategy.Run(ctx, func(r *dist.Replica) error {
		// A collective: all copies change by the sum of the replicas' changes, 1 + 2.
		if err := r.Assign(w, dist.AssignAdd, dist.Scalar(float64(r.ID()+1))); err != nil {
			return err
		}
		// Not a collective: this replica's copy changes by its rows, 4 or 3.
		return r.Assign(seen, dist.AssignAdd, dist.Scalar(float64(4-r.ID())))
	})
	if err != nil {
		return err
	}
	sum, err := seen.Read() // the sum of the copies
	if err != nil {
		return err
	}
	defer sum.Close()
	number, err := dist.ReadScalar[float64](sum)
	if err != nil {
		return err
	}
	fmt.Println(w)
	fmt.Println(seen)
	fmt.Println("seen:", number)
	return nil
}

func main() {
	if err := use(context.Background()); err != nil {
		log.Fatal(err)
	}
}
