// SPDX-License-Identifier: Apache-2.0

// serve.c in Go: each request runs on one idle replica, which has its own copy of the model.
package main

import (
	"context"
	"fmt"
	"log"

	"libdist.example/dist"
)

type model struct{ weight float64 }

func main() {
	if err := serve(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func serve(ctx context.Context) error {
	strategy, err := dist.New(dist.Options{Replicas: 2, Threads: dist.LibraryThreads})
	if err != nil {
		return err
	}
	defer strategy.Close() // also closes the instances
	err = strategy.OpenInstances(dist.InstancesOptions{
		CreateState: func(*dist.Replica) (any, error) { return &model{weight: 3}, nil }, // loads the model on each
	})
	if err != nil {
		return err
	}

	var answers [4]float64
	var requests [4]*dist.Request
	for i := range requests {
		requests[i], err = strategy.Submit(ctx, func(r *dist.Replica) error { // returns immediately
			answers[i] = float64(i) * dist.InstanceState[*model](r).weight
			return nil
		}, dist.SubmitOptions{})
		if err != nil {
			return err
		}
	}
	for i, request := range requests {
		if err := request.Wait(ctx); err != nil {
			return err
		}
		fmt.Printf("%d -> %g\n", i, answers[i])
	}
	return nil
}
