// SPDX-License-Identifier: Apache-2.0

// Worker: one of the processes of a job, which TF_CONFIG describes. Its replicas and those of all others, whatever language
// they are written in, add up their numbers. With the word "reform" it does so once more, after the workers have re-formed
// without those that have ended.
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
