// SPDX-License-Identifier: Apache-2.0

// Worker is one worker process of a job that TF_CONFIG describes. The replicas of all workers sum their
// numbers. The other workers may be written in any language. With the argument "reform", the workers that are
// still running re-form without the others and sum again.
//
//	dist-launch -n 2 --replicas 2 -- ./worker
package main

import (
	"context"
	"fmt"
	"log"
	"os"

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

	addUp := func(r *dist.Replica) error {
		number := []float64{float64(r.ID() + 1)}
		if err := dist.AllReduce(r, dist.Sum, number, dist.Tag("numbers")); err != nil {
			return err
		}
		fmt.Printf("replica %d of %d: %g\n", r.ID(), r.NumReplicas(), number[0])
		return nil
	}
	if err := strategy.Run(ctx, addUp); err != nil || len(os.Args) < 2 || os.Args[1] != "reform" {
		return err
	}
	if err := strategy.Reform(ctx, nil); err != nil {
		return err
	}
	return strategy.Run(ctx, addUp)
}
