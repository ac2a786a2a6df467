// SPDX-License-Identifier: Apache-2.0

// input.c in Go: batches of a source function, and a value from a function.
package main

import (
	"fmt"
	"io"
	"log"

	"libdist.example/dist"
)

func show() error {
	strategy, err := dist.New(dist.Options{Replicas: 2})
	if err != nil {
		return err
	}
	defer strategy.Close()
	dataset, err := strategy.NewDatasetFromCallback(func(index int64) (*dist.Value, error) {
		if index == 7 {
			return nil, io.EOF // the end of the pass
		}
		return dist.NewScalar(strategy, index*index)
	}, &dist.DatasetOptions{GlobalBatchSize: 4})
	if err != nil {
		return err
	}
	defer dataset.Close()
	for batch, err := range dataset.Batches() {
		if err != nil {
			return err
		}
		fmt.Println(batch) // a training loop passes the batch to RunValues
	}

	seeds, err := strategy.NewPerReplicaFromFunction(func(replica, numReplicas int) (*dist.Value, error) {
		return dist.NewScalar(strategy, int64(100+replica))
	})
	if err != nil {
		return err
	}
	defer seeds.Close()
	fmt.Println(seeds)
	return nil
}

func main() {
	if err := show(); err != nil {
		log.Fatal(err)
	}
}
