// SPDX-License-Identifier: Apache-2.0

// Training_loop is the custom training loop from the tf.distribute documentation, in Go. Run it as
// `training_loop [REPLICAS]` (default 2). It learns on which side of a line a point lies (squared hinge
// loss). It prints the loss and accuracy of each epoch and finally the bits of the weights, which equal those
// of examples/training_loop.c.
//
//	strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
//	with strategy.scope():
//	  weights = tf.Variable(tf.zeros([3]), aggregation=tf.VariableAggregation.SUM)
//	  accuracy = tf.keras.metrics.Accuracy()
//	dist_dataset = strategy.experimental_distribute_dataset(dataset.shuffle(1000).batch(GLOBAL_BATCH))
//
//	for epoch in range(EPOCHS):
//	  total_loss, steps = 0.0, 0
//	  for batch in dist_dataset:
//	    losses = strategy.run(train_step, args=batch)
//	    total_loss += strategy.reduce(tf.distribute.ReduceOp.SUM, losses, axis=None)
//	    steps += 1
//	  print(epoch, total_loss / steps, accuracy.result())
//	  accuracy.reset_state()
package main

import (
	"context"
	"fmt"
	"log"
	"math"
	"os"
	"strconv"

	"libdist.example/dist"
)

const (
	examples     = 1000
	globalBatch  = 64
	epochs       = 8
	learningRate = float32(2)
)

type model struct {
	strategy *dist.Strategy
	weights  *dist.Variable // for x, y and the bias
	accuracy *dist.Metric
}

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
	strategy, err := dist.New(dist.Options{Replicas: replicas})
	if err != nil {
		return err
	}
	defer strategy.Close()
	m := &model{strategy: strategy}
	if err := m.make(); err != nil {
		return err
	}
	defer m.accuracy.Close()
	defer m.weights.Close()
	dataset, err := makeDataset(strategy)
	if err != nil {
		return err
	}
	defer dataset.Close()
	for epoch := 1; epoch <= epochs; epoch++ {
		if err := m.trainEpoch(ctx, dataset, epoch); err != nil {
			return err
		}
	}
	return m.printWeights()
}

func (m *model) make() (err error) {
	m.weights, err = m.strategy.NewVariable(dist.Of(make([]float32, 3)),
		&dist.VariableOptions{Name: "weights", Aggregation: dist.AggregationSum})
	if err != nil {
		return err
	}
	m.accuracy, err = m.strategy.NewMetric(dist.MetricAccuracy, "accuracy")
	return err
}

// makeDataset returns points in the square [-1, 1) x [-1, 1). The label tells which side of the line a point
// is on.
func makeDataset(strategy *dist.Strategy) (*dist.Dataset, error) {
	points, labels := make([]float32, 2*examples), make([]int32, examples)
	random := uint32(1)
	for i := range points {
		random = random*1664525 + 1013904223
		points[i] = float32(random>>8)/(1<<23) - 1
	}
	for i := range labels {
		if points[2*i]+float32(2*points[2*i+1]) > 0.25 {
			labels[i] = 1
		}
	}
	return strategy.NewDataset([]dist.Array{dist.Of(points, examples, 2), dist.Of(labels)},
		&dist.DatasetOptions{GlobalBatchSize: globalBatch, Shuffle: true})
}

func (m *model) trainEpoch(ctx context.Context, dataset *dist.Dataset, epoch int) error {
	totalLoss, steps := 0.0, 0
	for batch, err := range dataset.Batches() {
		if err != nil {
			return err
		}
		loss, err := m.step(ctx, batch)
		if err != nil {
			return err
		}
		totalLoss += loss
		steps++
	}
	accuracy, err := m.accuracy.Result()
	if err != nil {
		return err
	}
	fmt.Printf("epoch %d: loss %.4f, accuracy %.1f%%\n", epoch, totalLoss/float64(steps), 100*accuracy)
	return m.accuracy.Reset()
}

// step trains on one batch and returns its loss, summed over the replicas.
func (m *model) step(ctx context.Context, batch *dist.Value) (float64, error) {
	losses, err := m.strategy.RunValues(ctx, m.trainStep, batch, nil)
	if err != nil {
		return 0, err
	}
	defer losses.Close()
	sum, err := m.strategy.Reduce(dist.Sum, losses)
	if err != nil {
		return 0, err
	}
	defer sum.Close()
	loss, err := dist.ReadScalar[float32](sum)
	return float64(loss), err
}

// trainStep runs on every replica with its part of the batch. args is the list (points [n, 2], labels [n]).
func (m *model) trainStep(r *dist.Replica, args, _ *dist.Value) (*dist.Value, error) {
	points, err := dist.Read[float32](args.Item(0))
	if err != nil {
		return nil, err
	}
	labels, err := dist.Read[int32](args.Item(1))
	if err != nil {
		return nil, err
	}
	weights, err := dist.Component[float32](m.weights, r.ID())
	if err != nil {
		return nil, err
	}

	// Forward and backward pass: the loss of each example, and the gradient of the mean loss over the global
	// batch. The conversions keep Go from fusing a product with a sum, which would round differently.
	w := weights.Data
	losses, predictions := make([]float32, labels.Len()), make([]int32, labels.Len())
	step := make([]float32, 3)
	for i, label := range labels.Data {
		x, y := points.Data[2*i], points.Data[2*i+1]
		z := float32(w[0]*x) + float32(w[1]*y) + w[2]
		side, missing := float32(-1), float32(0)
		if label != 0 {
			side = 1
		}
		if side*z < 1 {
			missing = 1 - float32(side*z) // squared hinge loss
		}
		losses[i] = missing * missing
		if z > 0 {
			predictions[i] = 1
		}
		slope := float32(learningRate / globalBatch * float32(-side*missing))
		step[0] += float32(slope * x)
		step[1] += float32(slope * y)
		step[2] += slope
	}

	// The variable's aggregation is SUM: libdist adds the changes of all replicas and applies the sum to every
	// copy.
	if err := r.Assign(m.weights, dist.AssignSub, dist.Of(step)); err != nil {
		return nil, err
	}
	if err := r.UpdateMetric(m.accuracy, dist.Of(predictions), labels, nil); err != nil {
		return nil, err
	}
	average := dist.Scalar(float32(0))
	if err := dist.AverageLoss(r, dist.Of(losses), nil, globalBatch, average); err != nil {
		return nil, err
	}
	return r.Strategy().NewTensor(average)
}

// printWeights prints the bits of replica 0's copy. All copies are equal.
func (m *model) printWeights() error {
	if _, err := m.weights.CheckDrift(); err != nil {
		return err
	}
	weights, err := dist.Component[float32](m.weights, 0)
	if err != nil {
		return err
	}
	fmt.Print("weights")
	for _, weight := range weights.Data {
		fmt.Printf(" %08x", math.Float32bits(weight))
	}
	fmt.Println()
	return nil
}
