// SPDX-License-Identifier: Apache-2.0

// Batch_reduce_to is the example of batch_reduce_to() from the tf.distribute documentation, in Go. Run it as
// `batch_reduce_to [REPLICAS]` (default 2). With one replica it uses a one-device strategy. It prints every
// copy of the variable: 2.0 2.0 with two replicas, 1.0 with one.
//
//	strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"], ...)
//	with strategy.scope():
//	  v = tf.Variable(0., aggregation=tf.VariableAggregation.SUM)
//
//	def step_fn(v):
//	  def merge_fn(strategy, value, var):
//	    reduced = strategy.extended.batch_reduce_to(tf.distribute.ReduceOp.SUM, [(value, var)])[0]
//	    strategy.extended.update(var, lambda var, value: var.assign(value), args=(reduced,))
//	  value = tf.identity(1.)
//	  tf.distribute.get_replica_context().merge_call(merge_fn, args=(value, v))
//
//	strategy.run(step_fn, args=(v,))
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strconv"

	"libdist.example/dist"
)

func main() {
	replicas := 2
	if len(os.Args) > 1 {
		replicas, _ = strconv.Atoi(os.Args[1])
	}
	if err := run(context.Background(), replicas); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, replicas int) error {
	options := dist.Options{Replicas: replicas}
	if replicas == 1 {
		options.Kind = dist.OneDevice
	}
	strategy, err := dist.New(options)
	if err != nil {
		return err
	}
	defer strategy.Close()
	v, err := strategy.NewVariable(dist.Scalar(float32(0)), &dist.VariableOptions{Aggregation: dist.AggregationSum})
	if err != nil {
		return err
	}
	defer v.Close()

	// The function literal captures v, so the run needs no arguments.
	err = strategy.Run(ctx, func(r *dist.Replica) error { return step(r, v) })
	if err != nil {
		return err
	}
	for id := range strategy.NumReplicas() {
		own, err := dist.Component[float32](v, id)
		if err != nil {
			return err
		}
		if id > 0 {
			fmt.Print(" ")
		}
		fmt.Printf("%.1f", own.Data[0])
	}
	fmt.Println()
	return nil
}

// step is step_fn. It runs on every replica.
func step(r *dist.Replica, v *dist.Variable) error {
	value, err := dist.NewScalar(r.Strategy(), float32(1))
	if err != nil {
		return err
	}
	defer value.Close()
	args, err := r.Strategy().NewTuple(value)
	if err != nil {
		return err
	}
	defer args.Close()
	_, err = r.MergeCall(func(s *dist.Strategy, args, _ *dist.Value) (*dist.Value, error) {
		return nil, merge(s, args.Item(0), v)
	}, args, nil)
	return err
}

// merge is merge_fn. It runs once for all replicas and receives their values as one per-replica value.
func merge(s *dist.Strategy, value *dist.Value, v *dist.Variable) error {
	reduced, err := s.BatchReduceTo(dist.Sum, []*dist.Value{value}, []dist.Destination{{Variable: v}}, nil)
	if err != nil {
		return err
	}
	defer reduced[0].Close()
	args, err := s.NewTuple(reduced[0])
	if err != nil {
		return err
	}
	defer args.Close()
	_, err = s.Update(v, func(place dist.UpdatePlace, args, _ *dist.Value) (*dist.Value, error) {
		own, err := dist.As[float32](place.Copy)
		if err != nil {
			return nil, err
		}
		own.Data[0], err = dist.ReadScalar[float32](args.Item(0))
		return nil, err
	}, args, nil)
	return err
}
