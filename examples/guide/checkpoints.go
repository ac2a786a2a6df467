// SPDX-License-Identifier: Apache-2.0

// checkpoints.c in Go: saves a checkpoint after each step, keeps the last two, and continues with more replicas.
//
//	go run checkpoints.go [PREFIX]
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"libdist.example/dist"
)

const kept = 2

var prefix = "step"

// checkpoints returns the paths of the files, the latest one last.
func checkpoints() ([]string, error) {
	return filepath.Glob(prefix + "-*.safetensors") // sorted
}

func stepOf(path string) (int, error) {
	return strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(path, prefix+"-"), ".safetensors"))
}

// start restores the latest checkpoint, if there is one, and returns its step.
func start(strategy *dist.Strategy, w *dist.Variable) (int, error) {
	files, err := checkpoints()
	if err != nil || len(files) == 0 {
		return 0, err
	}
	latest := files[len(files)-1]
	if err := strategy.LoadCheckpoint(latest, []*dist.Variable{w}, nil); err != nil {
		return 0, err
	}
	return stepOf(latest)
}

func save(strategy *dist.Strategy, w *dist.Variable, step int) error {
	path := fmt.Sprintf("%s-%06d.safetensors", prefix, step)
	if err := strategy.SaveCheckpoint(path, []*dist.Variable{w}, nil); err != nil {
		return err
	}
	files, err := checkpoints()
	for i := 0; err == nil && i+kept < len(files); i++ { // only after the new one is complete
		err = os.Remove(files[i])
	}
	return err
}

func train(ctx context.Context, replicas, lastStep int) error {
	strategy, err := dist.New(dist.Options{Replicas: replicas})
	if err != nil {
		return err
	}
	defer strategy.Close()
	w, err := strategy.NewVariable(dist.Scalar(0.0), &dist.VariableOptions{Name: "w", Aggregation: dist.AggregationSum})
	if err != nil {
		return err
	}
	defer w.Close()
	step, err := start(strategy, w)
	if err != nil {
		return err
	}
	value, err := w.Read()
	if err != nil {
		return err
	}
	defer value.Close()
	now, err := dist.ReadScalar[float64](value)
	if err != nil {
		return err
	}
	fmt.Printf("%d replicas start after step %d: w = %g\n", replicas, step, now)
	for ; err == nil && step < lastStep; err = save(strategy, w, step) {
		err := strategy.Run(ctx, func(r *dist.Replica) error { // all replicas together add 1
			return r.Assign(w, dist.AssignAdd, dist.Scalar(1/float64(r.NumReplicas())))
		})
		if err != nil {
			return err
		}
		step++
	}
	return err
}

func removeAll() error {
	files, err := checkpoints()
	if err != nil {
		return err
	}
	for _, path := range files {
		step, err := stepOf(path)
		if err != nil {
			return err
		}
		if err := os.Remove(path); err != nil {
			return err
		}
		fmt.Printf("step %d was left\n", step)
	}
	return nil
}

func main() {
	if len(os.Args) > 1 {
		prefix = os.Args[1]
	}
	ctx := context.Background()
	err := train(ctx, 2, 5)
	if err == nil {
		err = train(ctx, 4, 7)
	}
	if err == nil {
		err = removeAll()
	}
	if err != nil {
		log.Fatal(err)
	}
}
