// SPDX-License-Identifier: Apache-2.0

// training.c in Go: two replicas learn w in y = w * x.
package main

import (
	"context"
	"fmt"
	"log"

	"libdist.example/dist"
)

type model struct {
	w    *dist.Variable
	loss *dist.Metric
}

// trainStep runs on each replica with its rows of the batch: args is the list (x, y).
func (m *model) trainStep(r *dist.Replica, args, _ *dist.Value) (*dist.Value, error) {
	x, err := dist.Read[float64](args.Item(0))
	if err != nil {
		return nil, err
	}
	y, err := dist.Read[float64](args.Item(1))
	if err != nil {
		return nil, err
	}
	w, err := dist.Component[float64](m.w, r.ID()) // this replica's copy
	if err != nil {
		return nil, err
	}

	losses := make([]float64, x.Len())         // can be empty
	sums := []float64{0, float64(len(losses))} // of gradients and of rows
	for i := range losses {
		deviation := float64(w.Data[0]*x.Data[i]) - y.Data[i]
		losses[i] = deviation * deviation
		sums[0] += float64(2 * deviation * x.Data[i])
	}

	// Add up the gradients and the numbers of rows of all replicas, in one call.
	if err := dist.AllReduce(r, dist.Sum, sums); err != nil {
		return nil, err
	}

	// Every replica has the same sums, so each changes its own copy, and the copies stay equal.
	if err := r.Assign(m.w, dist.AssignSub, dist.Scalar(0.2*sums[0]/sums[1])); err != nil {
		return nil, err
	}
	return nil, r.UpdateMetric(m.loss, dist.Of(losses), nil, nil)
}

func (m *model) trainEpoch(ctx context.Context, strategy *dist.Strategy, dataset *dist.Dataset) (float64, error) {
	for batch, err := range dataset.Batches() {
		if err != nil {
			return 0, err
		}
		if _, err := strategy.RunValues(ctx, m.trainStep, batch, nil); err != nil {
			return 0, err
		}
	}
	loss, err := m.loss.Result() // over all rows of all replicas
	if err != nil {
		return 0, err
	}
	return loss, m.loss.Reset()
}

func train(ctx context.Context) error {
	strategy, err := dist.New(dist.Options{Replicas: 2})
	if err != nil {
		return err
	}
	defer strategy.Close()
	x, y := make([]float64, 9), make([]float64, 9)
	for i := range x {
		x[i] = float64(i+1) / 8
		y[i] = 3 * x[i]
	}
	dataset, err := strategy.NewDataset([]dist.Array{dist.Of(x), dist.Of(y)}, &dist.DatasetOptions{GlobalBatchSize: 4})
	if err != nil {
		return err
	}
	defer dataset.Close()
	m := &model{}
	if m.w, err = strategy.NewVariable(dist.Scalar(0.0), nil); err != nil {
		return err
	}
	defer m.w.Close()
	if m.loss, err = strategy.NewMetric(dist.MetricMean, "loss"); err != nil {
		return err
	}
	defer m.loss.Close()

	for epoch := 1; epoch <= 5; epoch++ {
		loss, err := m.trainEpoch(ctx, strategy, dataset)
		if err != nil {
			return err
		}
		fmt.Printf("epoch %d: loss %.4f\n", epoch, loss)
	}
	value, err := m.w.Read()
	if err != nil {
		return err
	}
	defer value.Close()
	w, err := dist.ReadScalar[float64](value)
	if err != nil {
		return err
	}
	fmt.Printf("w = %.3f\n", w)
	return nil
}

func main() {
	if err := train(context.Background()); err != nil {
		log.Fatal(err)
	}
}
