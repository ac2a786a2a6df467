// SPDX-License-Identifier: Apache-2.0

// collectives.c in Go: a group, an asynchronous collective, and a plan.
package main

import (
	"context"
	"fmt"
	"log"

	"libdist.example/dist"
)

// sumOfGroup adds up the numbers of the members of the group; only they take part.
func sumOfGroup(r *dist.Replica, group *dist.Group) error {
	if group.Rank(r.ID()) < 0 {
		return nil // not a member
	}
	number := []float64{float64(r.ID() + 1)}
	err := dist.AllReduce(r, dist.Sum, number, dist.InGroup(group))
	if err == nil && r.ID() == 0 {
		fmt.Println("group:", number[0])
	}
	return err
}

// asynchronous begins a collective and returns to it later. The slice must not be touched until the work has completed.
func asynchronous(r *dist.Replica) error {
	number := []float64{float64(r.ID() + 1)}
	var work *dist.Work
	if err := dist.AllReduce(r, dist.Sum, number, dist.Async(&work)); err != nil {
		return err
	}
	defer work.Close()
	// ... compute something else here ...
	err := work.Wait()
	if err == nil && r.ID() == 0 {
		fmt.Println("asynchronous:", number[0])
	}
	return err
}

// planned plans a collective once and starts it in each step. A tensor can be reduced as soon as all replicas have
// declared it ready.
func planned(r *dist.Replica) error {
	numbers := [][]float64{{0}, {0}}
	tensors := []dist.Array{dist.Of(numbers[0]), dist.Of(numbers[1])}
	var plan *dist.Work
	// A pack for each tensor; real gradients need packs of about 4 MiB.
	err := r.AllReduce(dist.Sum, tensors, tensors, dist.Plan(&plan), dist.BytesPerPack(8))
	if err != nil {
		return err
	}
	defer plan.Close()
	for step := 1; step <= 2; step++ {
		for t := len(numbers) - 1; t >= 0; t-- { // the last tensor first, as in backpropagation
			numbers[t][0] = float64(step * (t + 1) * (r.ID() + 1))
			if err := plan.Ready(t); err != nil {
				return err
			}
		}
		if err := plan.Wait(); err != nil {
			return err
		}
		if r.ID() == 0 {
			fmt.Printf("step %d: %g %g\n", step, numbers[0][0], numbers[1][0])
		}
	}
	return nil
}

func run(ctx context.Context) error {
	strategy, err := dist.New(dist.Options{Replicas: 4})
	if err != nil {
		return err
	}
	defer strategy.Close()
	even, err := strategy.NewGroup(0, 2)
	if err != nil {
		return err
	}
	defer even.Close()
	return strategy.Run(ctx, func(r *dist.Replica) error {
		if err := sumOfGroup(r, even); err != nil {
			return err
		}
		if err := asynchronous(r); err != nil {
			return err
		}
		return planned(r)
	})
}

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}
