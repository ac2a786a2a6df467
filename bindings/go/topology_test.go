// SPDX-License-Identifier: Apache-2.0

package dist_test

import (
	"runtime"
	"strings"
	"testing"

	"libdist.example/dist"
)

func TestTopologySaysWhereDevicesAre(t *testing.T) {
	devices := [][][]int{{{0, 0, 0, 0}, {1, 0, 0, 0}}, {{0, 1, 0, 0}, {1, 1, 0, 1}}}
	topology, err := dist.NewTopology([]int{2, 2, 1, 2}, devices)
	if err != nil {
		t.Fatal(err)
	}
	again, err := dist.NewTopology(topology.MeshShape(), topology.DeviceCoordinates())
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	for _, topology := range []*dist.Topology{topology, again} {
		is(t, "rank", topology.MeshRank(), 4)
		is(t, "shape", topology.MeshShape(), []int{2, 2, 1, 2})
		is(t, "devices", topology.DeviceCoordinates(), devices)
		is(t, "tasks", []int{topology.NumTasks(), topology.NumDevicesPerTask()}, []int{2, 2})
		is(t, "missing", topology.MissingDevices(), [][]int{{0, 0, 0, 1}, {0, 1, 0, 1}, {1, 0, 0, 1}, {1, 1, 0, 0}})
		is(t, "number missing", topology.NumMissingDevices(), 4)
		task, err := topology.TaskAt([]int{-1, -1, 0, -1})
		is(t, "task", []any{task, err}, []any{1, nil})
		device, err := topology.DeviceAt([]int{1, 1, 0, 1})
		is(t, "device", []any{device, err}, []any{1, nil})
		name, err := topology.DeviceNameAt([]int{1, 1, 0, 1}, "worker")
		is(t, "name", []any{name, err}, []any{"/job:worker/task:1/device:TPU:1", nil})
		name, err = topology.HostNameAt([]int{1, 0, 0, 0}, "")
		is(t, "host", []any{name, err}, []any{"/task:0/device:CPU:0", nil})
		name, err = topology.HostNameAt([]int{1, 0, 0, 0}, strings.Repeat("j", 500))
		is(t, "host", []any{name, err}, []any{"/job:" + strings.Repeat("j", 500) + "/task:0/device:CPU:0", nil})
		text, err := topology.Explain()
		is(t, "explained", []any{strings.Contains(text, ": "), err}, []any{true, nil})
		_, err = topology.CPUAt([]int{0, 0, 0, 0})
		fails(t, err, dist.ErrFailedPrecondition, "CPU")
	}
	topology.Close()
	topology.Close()
	_, err = topology.TaskAt([]int{0, 0, 0, 0})
	fails(t, err, dist.ErrFailedPrecondition, "topology is closed")
	is(t, "closed", []any{topology.MeshShape(), topology.DeviceCoordinates(), topology.MissingDevices()},
		[]any{[]int{}, [][][]int{}, [][]int{}})
}

func TestHostsTopologyHasItsCPUs(t *testing.T) {
	topology, err := dist.NewHostTopology()
	if err != nil {
		t.Fatal(err)
	}
	defer topology.Close()
	is(t, "devices", topology.NumDevicesPerTask(), runtime.NumCPU())
	seen := map[int]bool{}
	for _, at := range topology.DeviceCoordinates()[0] {
		cpu, err := topology.CPUAt(at)
		if err != nil || cpu < 0 || seen[cpu] {
			t.Error(at, cpu, err)
		}
		seen[cpu] = true
	}
}

func TestBadTopologiesAreRefused(t *testing.T) {
	for _, c := range []struct {
		shape   []int
		devices [][][]int
	}{
		{nil, nil},
		{[]int{}, nil},
		{[]int{1, 1, 1}, [][][]int{{{0, 0, 0}}}},
		{[]int{1, 1, 1, 0}, nil},
		{[]int{1, 1, 1, -1 << 40}, nil},
		{[]int{1, 1, 1, 1}, [][][]int{{{0, 0, 0}}}},
		{[]int{1, 1, 1, 1}, [][][]int{{{0, 0, 0, 1}}}},
		{[]int{1, 1, 1, 2}, [][][]int{{{0, 0, 0, 0}, {0, 0, 0, 1}}, {{0, 0, 0, 0}}}},
	} {
		_, err := dist.NewTopology(c.shape, c.devices)
		fails(t, err, dist.ErrInvalidArgument, "")
	}
	var none *dist.Topology
	_, err := none.TaskAt([]int{0, 0, 0, 0})
	fails(t, err, dist.ErrInvalidArgument, "nil")
	_, err = none.Explain()
	fails(t, err, dist.ErrInvalidArgument, "nil")
	is(t, "nil", []any{none.MeshRank(), len(none.MeshShape()), len(none.DeviceCoordinates())}, []any{0, 0, 0})
	none.Close()
	topology := fullTopology(t, 1, 1, 1, 2)
	for _, at := range [][]int{nil, {}, {0, 0, 0}, {0, 0, 0, 2}, {0, 0, 0, 0, 0}, {0, 0, 0, -3}} {
		_, err := topology.TaskAt(at)
		fails(t, err, dist.ErrInvalidArgument, "")
		_, err = topology.DeviceNameAt(at, "")
		fails(t, err, dist.ErrInvalidArgument, "")
	}
}

func TestAssignmentSaysWhoseDevicesAre(t *testing.T) {
	topology := fullTopology(t, 2, 2, 1, 2)
	a, err := topology.NewDeviceAssignment(2, &dist.AssignmentOptions{
		ComputationShape: []int{1, 2, 1, 2}, ComputationStride: []int{1, 1, 1, 1}, DeviceOrder: dist.DeviceOrderMesh})
	if err != nil {
		t.Fatal(err)
	}
	want := [][][]int{{{0, 0, 0, 0}, {0, 0, 0, 1}, {0, 1, 0, 0}, {0, 1, 0, 1}},
		{{1, 0, 0, 0}, {1, 0, 0, 1}, {1, 1, 0, 0}, {1, 1, 0, 1}}}
	is(t, "assignment", a.CoreAssignment(), want)
	is(t, "sizes", []int{a.NumReplicas(), a.NumLogicalDevices()}, []int{2, 4})
	at, err := a.Coordinates(-1, 2)
	is(t, "coordinates", []any{at, err}, []any{want[1][2], nil})
	replicas, err := a.LookupReplicas(0, 1)
	is(t, "replicas", []any{replicas, err}, []any{[]int{0, 1}, nil})
	device, err := a.Device(1, 3)
	is(t, "device", []any{device, err}, []any{7, nil})
	name, err := a.DeviceName(0, 1, "worker")
	is(t, "name", []any{name, err}, []any{"/job:worker/task:0/device:TPU:1", nil})
	name, err = a.HostName(0, 1, "")
	is(t, "host", []any{name, err}, []any{"/task:0/device:CPU:0", nil})
	_, err = a.LookupReplicas(1, 0)
	fails(t, err, dist.ErrInvalidArgument, "no replica")
	_, err = a.Coordinates(2, 0)
	fails(t, err, dist.ErrInvalidArgument, "")

	topology.Close() // the assignment holds it
	borrowed := a.Topology()
	is(t, "its topology", borrowed.MeshShape(), []int{2, 2, 1, 2})
	byHand, err := borrowed.NewDeviceAssignmentFromCores(want)
	if err != nil {
		t.Fatal(err)
	}
	defer byHand.Close()
	is(t, "by hand", byHand.CoreAssignment(), want)
	single, err := borrowed.NewSingleCoreDeviceAssignment()
	if err != nil {
		t.Fatal(err)
	}
	defer single.Close()
	is(t, "single", single.CoreAssignment(), [][][]int{{{0, 0, 0, 0}}})

	a.Close()
	a.Close()
	_, err = a.Device(0, 0)
	fails(t, err, dist.ErrFailedPrecondition, "device assignment is closed")
	_, err = borrowed.Explain() // it ended with the assignment
	fails(t, err, dist.ErrFailedPrecondition, "device assignment is closed")
	is(t, "closed", []any{len(a.CoreAssignment()), a.Topology() == nil, borrowed.MeshRank()}, []any{0, true, 0})
	for _, options := range []*dist.AssignmentOptions{
		{ComputationShape: []int{1, 2}}, {ComputationShape: []int{3, 1, 1, 1}}, {ComputationShape: []int{1, 1, 1, 0}},
		{ComputationShape: []int{1, 1, 1, 1}, ComputationStride: []int{1}}, {DeviceOrder: dist.DeviceOrderRing},
	} {
		_, err := byHand.Topology().NewDeviceAssignment(9, options)
		fails(t, err, dist.ErrInvalidArgument, "")
	}
	_, err = (*dist.Topology)(nil).NewDeviceAssignment(1, nil)
	fails(t, err, dist.ErrInvalidArgument, "nil")
	_, err = (*dist.Topology)(nil).NewDeviceAssignmentFromCores(want)
	fails(t, err, dist.ErrInvalidArgument, "nil")
	_, err = byHand.Topology().NewDeviceAssignmentFromCores([][][]int{{{0, 0}}})
	fails(t, err, dist.ErrInvalidArgument, "2 coordinates, but the mesh has 4")
	_, err = byHand.Topology().NewDeviceAssignmentFromCores([][][]int{{{0, 0, 0, 0}, {0, 0}}})
	fails(t, err, dist.ErrInvalidArgument, "has 2 coordinates, not 4")
	_, err = dist.New(dist.Options{Kind: dist.Mesh, DeviceAssignment: a})
	fails(t, err, dist.ErrFailedPrecondition, "device assignment is closed")
}

func TestPartitionsAreTensorFlows(t *testing.T) {
	p := &dist.Partition{Shape: []int{4, 7}, Dimensions: []int{2, 3}, NumLogicalDevices: 6, Uneven: true}
	is(t, "check", p.Check(), nil)
	shard, err := p.Shard(4)
	is(t, "shard", []any{shard, err},
		[]any{dist.Shard{Tile: []int{1, 1}, Begin: []int{2, 3}, Size: []int{2, 2}, Elements: 4}, nil})
	p.Uneven = false
	fails(t, p.Check(), dist.ErrInvalidArgument, "7")
	_, err = p.Shard(0)
	fails(t, err, dist.ErrInvalidArgument, "7")
	unknown := &dist.Partition{Shape: []int{-1}, Dimensions: []int{2}, NumLogicalDevices: 2}
	shard, err = unknown.Shard(1)
	is(t, "unknown", []any{shard, err},
		[]any{dist.Shard{Tile: []int{1}, Begin: []int{-1}, Size: []int{-1}, Elements: -1}, nil})
	scalar := &dist.Partition{Kind: dist.PartitionReplicate, NumLogicalDevices: 3}
	shard, err = scalar.Shard(2)
	is(t, "scalar", []any{shard.Elements, err}, []any{1, nil})
	assign := &dist.Partition{Kind: dist.PartitionAssign, Shape: []int{3}, NumLogicalDevices: 2, SPMD: true}
	fails(t, assign.Check(), dist.ErrInvalidArgument, "")
	var none *dist.Partition
	fails(t, none.Check(), dist.ErrInvalidArgument, "nil")
	_, err = none.Shard(0)
	fails(t, err, dist.ErrInvalidArgument, "nil")

	rows := &dist.Partition{Shape: []int{4, 4}, Dimensions: []int{2, 1}, NumLogicalDevices: 2}
	columns := &dist.Partition{Shape: []int{4, 4}, Dimensions: []int{1, 2}, NumLogicalDevices: 2}
	for device, want := range map[int]int64{0: 16, 1: 16, -1: 32} {
		bytes, err := dist.ReshardBytes(rows, columns, dist.F32, device)
		is(t, "bytes", []any{bytes, err}, []any{want, nil})
	}
	_, err = dist.ReshardBytes(rows, nil, dist.F32, 0)
	fails(t, err, dist.ErrInvalidArgument, "nil")
	_, err = dist.ReshardBytes(rows, columns, dist.DType(99), 0)
	fails(t, err, dist.ErrInvalidArgument, "dtype")
}
