// SPDX-License-Identifier: Apache-2.0

// Tpu_split is the example of TPUStrategy with logical devices from the tf.distribute documentation, in Go:
// one replica with eight logical devices. A batch of images is split over them, 2 ways in height and 4 ways
// in width. The model of this example inverts the images. The program prints each device's part of the
// output.
//
//	topology = tf.tpu.experimental.initialize_tpu_system(resolver)
//	device_assignment = tf.tpu.experimental.DeviceAssignment.build(
//	    topology, computation_shape=[1, 2, 2, 2], num_replicas=1)
//	strategy = tf.distribute.TPUStrategy(
//	    resolver, experimental_device_assignment=device_assignment,
//	    experimental_spmd_xla_partitioning=True)
//	iterator = iter(inputs)
//
//	def step_fn(inputs):
//	  inputs = strategy.experimental_split_to_logical_devices(inputs, [1, 2, 4, 1])
//	  # model() function will be executed on 8 logical devices with `inputs` split 2 * 4 ways.
//	  output = model(inputs)
//	  return output
//	strategy.run(step_fn, args=(next(iterator),))
package main

import (
	"context"
	"fmt"
	"log"

	"libdist.example/dist"
)

const (
	images, height, width, channels = 4, 4, 8, 3

	pixels = images * height * width * channels
	white  = 1000
)

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	strategy, err := makeStrategy()
	if err != nil {
		return err
	}
	defer strategy.Close()
	numbers := make([]int32, pixels)
	for i := range numbers {
		numbers[i] = int32(i)
	}
	inputs, err := strategy.NewDataset([]dist.Array{dist.Of(numbers, images, height, width, channels)},
		&dist.DatasetOptions{GlobalBatchSize: images})
	if err != nil {
		return err
	}
	defer inputs.Close()
	for batch, err := range inputs.Batches() { // there is one batch
		if err != nil {
			return err
		}
		args, err := strategy.NewList(batch)
		if err != nil {
			return err
		}
		defer args.Close()
		output, err := strategy.RunValues(ctx, step, args, nil)
		if err != nil {
			return err
		}
		defer output.Close()
		if err := show(output); err != nil {
			return err
		}
	}
	return nil
}

// initialize returns a topology of eight devices. dist.NewHostTopology would return one with this machine's
// CPUs.
func initialize() (*dist.Topology, error) {
	task := make([][]int, 8)
	for d := range task {
		task[d] = []int{0, d / 4, d / 2 % 2, d % 2}
	}
	return dist.NewTopology([]int{1, 2, 2, 2}, [][][]int{task})
}

func makeStrategy() (*dist.Strategy, error) {
	topology, err := initialize()
	if err != nil {
		return nil, err
	}
	defer topology.Close()
	assignment, err := topology.NewDeviceAssignment(1,
		&dist.AssignmentOptions{ComputationShape: []int{1, 2, 2, 2}})
	if err != nil {
		return nil, err
	}
	defer assignment.Close() // the strategy holds its own reference
	return dist.New(dist.Options{Kind: dist.Mesh, DeviceAssignment: assignment, UseSPMDPartitioning: true})
}

// step is step_fn. It runs on the replica. args is the list (inputs).
func step(r *dist.Replica, args, _ *dist.Value) (*dist.Value, error) {
	inputs, err := r.SplitToLogicalDevices(args.Item(0), []int{1, 2, 4, 1}, nil)
	if err != nil {
		return nil, err
	}
	defer inputs.Close()
	modelArgs, err := r.Strategy().NewList(inputs)
	if err != nil {
		return nil, err
	}
	defer modelArgs.Close()
	return r.RunOnDevices(model, modelArgs, nil)
}

// model runs on one logical device. Its input is a view with gaps, its part of the images. It returns the
// inverted part.
func model(device *dist.Replica, args, _ *dist.Value) (*dist.Value, error) {
	part, err := dist.Read[int32](args.Item(0)) // a copy without gaps
	if err != nil {
		return nil, err
	}
	for i, pixel := range part.Data {
		part.Data[i] = white - pixel
	}
	return device.Strategy().NewTensor(part)
}

// show prints the output, which can still be read as one tensor of all images.
func show(output *dist.Value) error {
	for d := range output.Len() {
		raw, begin, err := output.Shard(d)
		if err != nil {
			return err
		}
		shard, err := dist.As[int32](raw)
		if err != nil {
			return err
		}
		fmt.Printf("logical device %d: rows %d-%d, columns %d-%d, first pixel %d\n", d, begin[1],
			begin[1]+shard.Shape[1]-1, begin[2], begin[2]+shard.Shape[2]-1, shard.Data[0])
	}
	whole, err := dist.Read[int32](output)
	if err != nil {
		return err
	}
	wrong := 0
	for i, pixel := range whole.Data {
		if pixel != int32(white-i) {
			wrong++
		}
	}
	fmt.Printf("all %d pixels: %d wrong\n", len(whole.Data), wrong)
	return nil
}
