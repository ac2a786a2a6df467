// SPDX-License-Identifier: Apache-2.0

// Digits trains a small neural network on handwritten digits, data-parallel with libdist. For the same
// replicas, epochs and seed, it computes the same parameters as the C program train_digits, to the last bit.
// With -numerics reproducible, they do not depend on the number of replicas either.
//
//	go run ./examples/digits -replicas 2 -epochs 40
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"

	"libdist.example/dist"
)

// options are the command-line options.
type options struct {
	replicas, epochs int
	seed             uint64
	reproducible     bool
	data             string
}

func main() {
	log.SetFlags(0)
	var o options
	numerics := flag.String("numerics", "ordered",
		"ordered: gradients are added in the order of replicas; reproducible: exactly, whoever brings them")
	flag.IntVar(&o.replicas, "replicas", 2, "replicas, each a thread")
	flag.IntVar(&o.epochs, "epochs", 40, "passes over the training part")
	flag.Uint64Var(&o.seed, "seed", 1, "of the split, the first weights and the order of the batches")
	flag.StringVar(&o.data, "data", "../../examples/data/digits.csv", "a CSV `file`: numbers, and the label last")
	flag.Parse()
	switch *numerics {
	case "ordered":
	case "reproducible":
		o.reproducible = true
	default:
		log.Fatalf("-numerics is %q, but must be ordered or reproducible", *numerics)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o, os.Stdout); errors.Is(err, context.Canceled) {
		log.Fatal("interrupted")
	} else if err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, o options, out io.Writer) error {
	table, err := readTable(o.data)
	if err != nil {
		return err
	}
	train, test := table.split(o.seed)
	strategy, err := dist.New(dist.Options{Replicas: o.replicas})
	if err != nil {
		return err
	}
	defer strategy.Close()
	t, err := newTrainer(strategy, table, o)
	if err != nil {
		return err
	}
	defer t.model.close()
	trainSet, err := train.dataset(strategy, table.features, o.reproducible,
		dist.DatasetOptions{Shuffle: true, Seed: o.seed})
	if err != nil {
		return err
	}
	defer trainSet.Close()
	testSet, err := test.dataset(strategy, table.features, false, dist.DatasetOptions{})
	if err != nil {
		return err
	}
	defer testSet.Close()

	var accuracy float64
	for epoch := 1; epoch <= o.epochs; epoch++ {
		right, err := t.pass(ctx, trainSet, t.trainReplica)
		if err != nil {
			return err
		}
		tested, err := t.pass(ctx, testSet, t.testReplica)
		if err != nil {
			return err
		}
		accuracy = float64(tested) / float64(test.rows)
		fmt.Fprintf(out, "epoch %d: %.3f of the training part, %.3f of the test part are right\n", epoch,
			float64(right)/float64(train.rows), accuracy)
	}
	digest, err := t.model.digest(strategy)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "test accuracy: %.3f\nparameters: %s\n", accuracy, digest)
	return nil
}
