// SPDX-License-Identifier: Apache-2.0

// hello.c in Go: four replicas add up their numbers.
package main

import (
	"context"
	"fmt"
	"log"

	"libdist.example/dist"
)

func main() {
	strategy, err := dist.New(dist.Options{Replicas: 4})
	if err != nil {
		log.Fatal(err)
	}
	defer strategy.Close()

	err = strategy.Run(context.Background(), func(r *dist.Replica) error {
		number := []float64{float64(r.ID() + 1)} // 1, 2, 3 and 4
		if err := dist.AllReduce(r, dist.Sum, number); err != nil {
			return err
		}
		fmt.Printf("replica %d: the sum is %g\n", r.ID(), number[0])
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
}
