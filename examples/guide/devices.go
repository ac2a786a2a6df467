// SPDX-License-Identifier: Apache-2.0

// devices.c in Go: one replica with 2 x 2 logical devices. A matrix is split over them, and each row of devices adds up
// its tiles.
package main

import (
	"context"
	"fmt"
	"log"

	"libdist.example/dist"
)

// makeStrategy assigns four devices in a line to one replica; NewHostTopology would return the CPUs of this machine.
func makeStrategy() (*dist.Strategy, error) {
	line := []int{4, 1, 1, 1}
	positions := [][]int{{0, 0, 0, 0}, {1, 0, 0, 0}, {2, 0, 0, 0}, {3, 0, 0, 0}}
	topology, err := dist.NewTopology(line, [][][]int{positions})
	if err != nil {
		return nil, err
	}
	defer topology.Close()
	assignment, err := topology.NewDeviceAssignment(1, &dist.AssignmentOptions{ComputationShape: line})
	if err != nil {
		return nil, err
	}
	defer assignment.Close()
	return dist.New(dist.Options{Kind: dist.Mesh, DeviceAssignment: assignment,
		Axes: []dist.MeshAxis{{Name: "row", Size: 2}, {Name: "column", Size: 2}}})
}

// addRows runs on each device at the same time. args is the list (this device's tile).
func addRows(device *dist.Replica, args, _ *dist.Value) (*dist.Value, error) {
	tile, err := dist.Read[float64](args.Item(0))
	if err != nil {
		return nil, err
	}
	sum := []float64{0}
	for _, number := range tile.Data {
		sum[0] += number
	}
	row, _, err := device.DeviceAxis("row")
	if err != nil {
		return nil, err
	}
	column, _, err := device.DeviceAxis("column")
	if err != nil {
		return nil, err
	}
	fmt.Printf("device %d in row %d, column %d: %g\n", device.ID(), row, column, sum[0])

	group, err := device.DeviceAxisGroup("column") // the devices of a row differ in their column
	if err != nil {
		return nil, err
	}
	if err := dist.AllReduce(device, dist.Sum, sum, dist.InGroup(group)); err != nil {
		return nil, err
	}
	return device.Strategy().NewTensor(dist.Of(sum, 1, 1))
}

// step runs on the replica: it splits the matrix, and joins the results of the devices.
func step(r *dist.Replica, args, _ *dist.Value) (*dist.Value, error) {
	split, err := r.SplitToLogicalDevices(args.Item(0), []int{2, 2}, nil)
	if err != nil {
		return nil, err
	}
	defer split.Close()
	tiles, err := r.Strategy().NewList(split)
	if err != nil {
		return nil, err
	}
	defer tiles.Close()
	return r.RunOnDevices(addRows, tiles, nil)
}

func run(ctx context.Context) error {
	strategy, err := makeStrategy()
	if err != nil {
		return err
	}
	defer strategy.Close()
	numbers := make([]float64, 16)
	for i := range numbers {
		numbers[i] = float64(i)
	}
	matrix, err := dist.NewValue(strategy, numbers, 4, 4)
	if err != nil {
		return err
	}
	defer matrix.Close()
	result, err := strategy.RunValues(ctx, step, matrix, nil)
	if err != nil {
		return err
	}
	defer result.Close()
	sums, err := dist.Read[float64](result) // the tiles of all devices together
	if err != nil {
		return err
	}
	fmt.Printf("result: [[%g, %g], [%g, %g]]\n", sums.Data[0], sums.Data[1], sums.Data[2], sums.Data[3])
	return nil
}

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}
