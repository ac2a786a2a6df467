// SPDX-License-Identifier: Apache-2.0

// embedding.c in Go: two goroutines of the program are the replicas.
package main

import (
	"fmt"
	"log"
	"sync"

	"libdist.example/dist"
)

func step(r *dist.Replica) error {
	number := []float64{float64(r.ID() + 1)}
	if err := dist.AllReduce(r, dist.Sum, number); err != nil {
		return err
	}
	fmt.Printf("replica %d: the sum is %g\n", r.ID(), number[0])
	return nil
}

func main() {
	strategy, err := dist.New(dist.Options{Replicas: 2, Threads: dist.Goroutines})
	if err != nil {
		log.Fatal(err)
	}
	defer strategy.Close()
	var all sync.WaitGroup
	for id := range 2 {
		all.Add(1)
		go func() { // joins the run, does its part, and leaves with the run
			defer all.Done()
			r, err := strategy.Enter(id)
			if err != nil {
				log.Fatal(err)
			}
			if err := r.Leave(step(r)); err != nil { // the error of the whole run
				log.Fatal(err)
			}
		}()
	}
	all.Wait()
}
