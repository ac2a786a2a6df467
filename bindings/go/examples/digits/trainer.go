// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	"libdist.example/dist"
)

const learningRate = float32(0.1)

// trainer trains the model. One step is one run: every replica computes gradients on its part of the batch,
// all-reduces them with its peers, and applies the same update to its own copy of the variables.
//
// With ordered sums, a replica's part consists of rows, and the replica adds up their gradients itself. The
// bits depend on the number of these rows and therefore on the number of replicas. With reproducible sums,
// its part consists of whole micro-batches, and it passes each micro-batch's gradients as a separate
// contribution. That sum is exact, so the bits depend only on the micro-batches.
type trainer struct {
	strategy *dist.Strategy
	model    *model
	numerics dist.Numerics
	replicas []replica // one per replica
	rows     int       // rows of the current global batch
}

type replica struct {
	net       *network
	gradients [][]dist.Array // per micro-batch of its part, as tensors; [0] becomes the sum over all replicas
}

func newTrainer(s *dist.Strategy, t *table, o options) (*trainer, error) {
	m, err := newModel(s, t.features, t.classes, o.seed)
	if err != nil {
		return nil, err
	}
	trainer := &trainer{strategy: s, model: m, replicas: make([]replica, s.NumReplicas())}
	parts, n := 1, s.NumReplicas()
	if o.reproducible {
		trainer.numerics = dist.Reproducible
		parts = (batchRows/microBatchRows + n - 1) / n
	}
	for id := range trainer.replicas {
		own := &trainer.replicas[id]
		own.net = newNetwork(m, max(microBatchRows, (batchRows+n-1)/n))
		for range parts {
			var gradients []dist.Array
			for t := range names {
				gradients = append(gradients, dist.Of(make([]float32, m.count(t)), m.shape(t)...))
			}
			own.gradients = append(own.gradients, gradients)
		}
	}
	return trainer, nil
}

// pass runs fn on every batch of a dataset and returns the total number of correct rows.
func (t *trainer) pass(ctx context.Context, dataset *dist.Dataset, fn dist.ValuesFunc) (right int64, err error) {
	for batch, err := range dataset.Batches() {
		if err != nil {
			return 0, err
		}
		if t.rows, err = countRows(batch); err != nil {
			return 0, err
		}
		scores, err := t.strategy.RunValues(ctx, fn, batch, nil)
		if err != nil {
			return 0, err
		}
		sum, err := t.strategy.Reduce(dist.Sum, scores)
		scores.Close()
		if err != nil {
			return 0, err
		}
		n, err := dist.ReadScalar[int64](sum)
		sum.Close()
		if err != nil {
			return 0, err
		}
		right += n
	}
	return right, nil
}

// countRows returns the number of rows in a batch over all replicas. The labels are one tensor or one per
// replica.
func countRows(b *dist.Value) (rows int, err error) {
	labels := b.Item(1)
	count := func(v *dist.Value) error {
		tensor, err := dist.Read[int32](v)
		for _, label := range tensor.Data {
			if label != noLabel {
				rows++
			}
		}
		return err
	}
	if labels.Len() == 0 {
		return rows, count(labels)
	}
	for _, component := range labels.Items() {
		if err := count(component); err != nil {
			return 0, err
		}
	}
	return rows, nil
}

// parts returns a replica's micro-batches. A part that consists of rows is one micro-batch of any size; a
// replica without rows gets an empty one. The batches are copies, because args is only valid until the
// function returns.
func parts(args *dist.Value) ([]batch, error) {
	features, err := dist.Read[float32](args.Item(0))
	if err != nil {
		return nil, err
	}
	labels, err := dist.Read[int32](args.Item(1))
	if err != nil {
		return nil, err
	}
	columns := features.Shape[len(features.Shape)-1]
	if len(features.Shape) == 2 || features.Shape[0] == 0 {
		rows := features.Shape[0]
		return []batch{{rows, features.Data, labels.Data}}, nil
	}
	micro := make([]batch, features.Shape[0])
	for j := range micro {
		own := labels.Data[j*microBatchRows:][:microBatchRows]
		rows := microBatchRows
		for rows > 0 && own[rows-1] == noLabel {
			rows--
		}
		micro[j] = batch{rows, features.Data[j*microBatchRows*columns:][:rows*columns], own[:rows]}
	}
	return micro, nil
}

// trainReplica is the replica function of a training step.
func (t *trainer) trainReplica(r *dist.Replica, args, _ *dist.Value) (*dist.Value, error) {
	own := &t.replicas[r.ID()]
	micro, err := parts(args)
	if err != nil {
		return nil, err
	}
	parameters, err := t.model.copies(r.ID())
	if err != nil {
		return nil, err
	}
	var right int64
	var contributions []dist.Array // the lists of all micro-batches, concatenated
	for j, b := range micro {
		if err := own.net.forward(r, parameters, b); err != nil {
			return nil, err
		}
		right += own.net.correct(b)
		gradients := dataOf(own.gradients[j])
		if err := own.net.backward(r, parameters, b, 1/float32(t.rows), gradients); err != nil {
			return nil, err
		}
		contributions = append(contributions, own.gradients[j]...)
	}

	// Sum the gradients of all micro-batches of all replicas into this replica's first one.
	err = r.AllReduce(dist.Sum, contributions, own.gradients[0], dist.Tag("gradients"),
		dist.WithNumerics(t.numerics), dist.Contributions(len(micro)))
	if err != nil {
		return nil, err
	}
	for i, gradient := range dataOf(own.gradients[0]) {
		for k := range gradient {
			parameters[i][k] -= float32(learningRate * gradient[k])
		}
	}
	return dist.NewScalar(r.Strategy(), right)
}

// testReplica is the replica function of a test step.
func (t *trainer) testReplica(r *dist.Replica, args, _ *dist.Value) (*dist.Value, error) {
	net := t.replicas[r.ID()].net
	micro, err := parts(args)
	if err != nil {
		return nil, err
	}
	parameters, err := t.model.copies(r.ID())
	if err != nil {
		return nil, err
	}
	if err := net.forward(r, parameters, micro[0]); err != nil {
		return nil, err
	}
	return dist.NewScalar(r.Strategy(), net.correct(micro[0]))
}

// dataOf returns the elements of float32 tensors.
func dataOf(tensors []dist.Array) [][]float32 {
	all := make([][]float32, len(tensors))
	for i, tensor := range tensors {
		all[i] = tensor.(dist.Tensor[float32]).Data
	}
	return all
}
