// SPDX-License-Identifier: Apache-2.0

package dist_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"

	"libdist.example/dist"
)

// fullTopology has a device at every position of the mesh, in one task.
func fullTopology(t *testing.T, shape ...int) *dist.Topology {
	t.Helper()
	n := shape[0] * shape[1] * shape[2] * shape[3]
	devices := make([][]int, n)
	for i := range devices {
		devices[i] = make([]int, 4)
		rest := i
		for axis := 3; axis >= 0; axis-- {
			devices[i][axis] = rest % shape[axis]
			rest /= shape[axis]
		}
	}
	topology, err := dist.NewTopology(shape, [][][]int{devices})
	if err != nil {
		t.Fatal(err)
	}
	return topology
}

// newMesh makes a strategy of replicas x devices, the latter along y.
func newMesh(t *testing.T, replicas, devices int, options dist.Options) *dist.Strategy {
	t.Helper()
	topology := fullTopology(t, replicas, devices, 1, 1)
	defer topology.Close()
	assignment, err := topology.NewDeviceAssignment(replicas, &dist.AssignmentOptions{
		ComputationShape: []int{1, devices, 1, 1}, DeviceOrder: dist.DeviceOrderMesh})
	if err != nil {
		t.Fatal(err)
	}
	defer assignment.Close()
	options.Kind, options.DeviceAssignment = dist.Mesh, assignment
	return newStrategy(t, options)
}

// consecutive is a tensor of 0, 1, 2, ...
func consecutive(s *dist.Strategy, shape ...int) *dist.Value {
	n := 1
	for _, size := range shape {
		n *= size
	}
	data := make([]int64, n)
	for i := range data {
		data[i] = int64(i)
	}
	value, err := dist.NewValue(s, data, shape...)
	if err != nil {
		panic(err)
	}
	return value
}

// is fails a test with what differs; usable on any goroutine.
func is(t *testing.T, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func fails(t *testing.T, err error, code dist.Code, words string) {
	t.Helper()
	if !errors.Is(err, code) || !strings.Contains(fmt.Sprint(err), words) {
		t.Errorf("%v, want %v with %q", err, code, words)
	}
}

// onDevices runs a function on the devices of every replica.
func onDevices(t *testing.T, s *dist.Strategy, fn func(device *dist.Replica) error) {
	t.Helper()
	if err := s.Run(background, func(r *dist.Replica) error {
		_, err := r.RunOnDevices(func(device *dist.Replica, _, _ *dist.Value) (*dist.Value, error) {
			return nil, fn(device)
		}, nil, nil)
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

func TestDevicesGetShardsAndGiveAWhole(t *testing.T) {
	for _, threads := range []dist.Threads{dist.CallerThread, dist.LibraryThreads} {
		for _, hop := range []dist.Choice{dist.No, dist.Yes} {
			s := newMesh(t, 2, 4, dist.Options{Threads: threads, HopGoroutine: hop})
			is(t, "devices", s.NumLogicalDevices(), 4)
			if err := s.Run(background, func(r *dist.Replica) error { return doubleOnDevices(t, r) }); err != nil {
				t.Error(threads, hop, err)
			}
		}
	}
}

func TestOneDeviceRunsOnItsReplicasGoroutine(t *testing.T) {
	s := newMesh(t, 2, 1, dist.Options{Threads: dist.Goroutines})
	onDevices(t, s, func(device *dist.Replica) error {
		is(t, "device", []int{device.ID(), device.NumReplicas(), dist.CurrentReplica().DeviceReplica()},
			[]int{0, 1, device.DeviceReplica()})
		return device.Barrier()
	})
}

func doubleOnDevices(t *testing.T, r *dist.Replica) error {
	whole := consecutive(r.Strategy(), 4, 6)
	defer whole.Close()
	split, err := r.SplitToLogicalDevices(whole, []int{2, 2}, nil)
	if err != nil {
		return err
	}
	defer split.Close()
	is(t, "kind", []any{split.Kind(), split.Len()}, []any{dist.ShardedValue, 4})
	args, err := r.Strategy().NewTuple(split)
	if err != nil {
		return err
	}
	defer args.Close()
	result, err := r.RunOnDevices(func(device *dist.Replica, args, _ *dist.Value) (*dist.Value, error) {
		is(t, "replica", []int{device.DeviceReplica(), device.NumReplicas()}, []int{r.ID(), 4})
		at, err := device.DeviceCoordinates()
		is(t, "coordinates", []any{at, err}, []any{[]int{r.ID(), device.ID(), 0, 0}, nil})
		shard, err := dist.Read[int64](args.Item(0))
		if err != nil {
			return nil, err
		}
		is(t, "shape", shard.Shape, []int{2, 3})
		for i := range shard.Data {
			shard.Data[i] *= 2
		}
		return device.Strategy().NewTensor(shard)
	}, args, nil)
	if err != nil {
		return err
	}
	defer result.Close()
	got, err := dist.Read[int64](result)
	if err != nil {
		return err
	}
	for i, n := range got.Data {
		if n != int64(2*i) {
			return fmt.Errorf("element %d is %d", i, n)
		}
	}
	p, err := result.Partition()
	is(t, "partition", []any{p, err},
		[]any{dist.Partition{Kind: dist.PartitionSplit, Shape: []int{4, 6}, Dimensions: []int{2, 2}, NumLogicalDevices: 4}, nil})
	shard, begin, err := result.Shard(3)
	if err != nil {
		return err
	}
	is(t, "shard", []any{begin, shard.Shape, shard.Strides == nil}, []any{[]int{2, 3}, []int{2, 3}, true})
	is(t, "of a replica", r.DeviceReplica(), -1)
	return nil
}

func TestTensorsAreAssignedAndReplicated(t *testing.T) {
	s := newMesh(t, 1, 3, dist.Options{})
	err := s.Run(background, func(r *dist.Replica) error {
		whole := consecutive(s, 4)
		defer whole.Close()
		assigned, err := r.AssignToLogicalDevice(whole, 1)
		if err != nil {
			return err
		}
		defer assigned.Close()
		replicated, err := r.ReplicateToLogicalDevices(whole)
		if err != nil {
			return err
		}
		defer replicated.Close()
		_, _, err = assigned.Shard(0)
		fails(t, err, dist.ErrNotFound, "")
		_, _, err = whole.Shard(0)
		fails(t, err, dist.ErrInvalidArgument, "not a sharded tensor")
		_, err = whole.Partition()
		fails(t, err, dist.ErrInvalidArgument, "not a sharded tensor")
		_, err = r.SplitToLogicalDevices(whole, []int{3}, nil)
		fails(t, err, dist.ErrInvalidArgument, "")
		_, err = r.SplitToLogicalDevices(whole, nil, nil)
		fails(t, err, dist.ErrInvalidArgument, "")
		_, err = r.SplitToLogicalDevices(nil, []int{3}, nil)
		fails(t, err, dist.ErrInvalidArgument, "nil")
		uneven, err := r.SplitToLogicalDevices(whole, []int{3}, &dist.SplitOptions{Uneven: true})
		if err != nil {
			return err
		}
		defer uneven.Close()
		kwargs, err := s.NewDict(map[string]*dist.Value{"a": assigned, "r": replicated, "u": uneven})
		if err != nil {
			return err
		}
		defer kwargs.Close()
		result, err := r.RunOnDevices(func(device *dist.Replica, _, kwargs *dist.Value) (*dist.Value, error) {
			is(t, "assigned", kwargs.Get("a").Kind() == dist.NoneValue, device.ID() != 1)
			part, err := dist.Read[int64](kwargs.Get("u"))
			is(t, "uneven", []any{part.Data, err}, []any{[][]int64{{0, 1}, {2}, {3}}[device.ID()], nil})
			return kwargs.Get("r").Retain(), nil
		}, nil, &dist.DevicesOptions{Kwargs: kwargs})
		if err != nil {
			return err
		}
		defer result.Close()
		got, err := dist.Read[int64](result)
		is(t, "result", got.Data, []int64{0, 1, 2, 3})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	spmd := newMesh(t, 1, 2, dist.Options{UseSPMDPartitioning: true})
	err = spmd.Run(background, func(r *dist.Replica) error {
		whole := consecutive(spmd, 4)
		defer whole.Close()
		_, err := r.AssignToLogicalDevice(whole, 1)
		return err
	})
	fails(t, err, dist.ErrInvalidArgument, "")
}

func TestResultsAreJoinedAsSaid(t *testing.T) {
	s := newMesh(t, 1, 3, dist.Options{})
	own := func(device *dist.Replica, _, _ *dist.Value) (*dist.Value, error) {
		return dist.NewValue(device.Strategy(), []int64{int64(device.ID())})
	}
	err := s.Run(background, func(r *dist.Replica) error {
		for _, c := range []struct {
			how  []*dist.Partition
			want []int64
		}{
			{[]*dist.Partition{{Dimensions: []int{3}}}, []int64{0, 1, 2}},
			{[]*dist.Partition{{Kind: dist.PartitionAssign, LogicalDevice: 2}}, []int64{2}},
		} {
			result, err := r.RunOnDevices(own, nil, &dist.DevicesOptions{Results: c.how})
			if err != nil {
				return err
			}
			got, err := dist.Read[int64](result)
			is(t, "joined", []any{got.Data, err}, []any{c.want, nil})
			result.Close()
		}
		for _, how := range [][]*dist.Partition{nil, {nil}, {{Dimensions: []int{2}}}, {{Kind: 9}}, {nil, nil}} {
			_, err := r.RunOnDevices(own, nil, &dist.DevicesOptions{Results: how})
			fails(t, err, dist.ErrInvalidArgument, "")
		}
		none, err := r.RunOnDevices(func(*dist.Replica, *dist.Value, *dist.Value) (*dist.Value, error) {
			return nil, nil
		}, nil, nil)
		is(t, "nothing", []any{none, err}, []any{(*dist.Value)(nil), nil})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestAxesHaveNamesAndGroups(t *testing.T) {
	s := newMesh(t, 2, 6, dist.Options{Axes: []dist.MeshAxis{{"row", 2}, {"column", 3}}})
	var mu sync.Mutex
	var kept *dist.Group
	onDevices(t, s, func(device *dist.Replica) error {
		me := device.ID()
		row, rows, err := device.DeviceAxis("row")
		is(t, "row", []any{row, rows, err}, []any{me / 3, 2, nil})
		column, columns, err := device.DeviceAxis("column")
		is(t, "column", []any{column, columns, err}, []any{me % 3, 3, nil})
		_, _, err = device.DeviceAxis("z")
		fails(t, err, dist.ErrInvalidArgument, `"row", "column"`)
		group, err := device.DeviceAxisGroup("column")
		if err != nil {
			return err
		}
		is(t, "group", []int{group.Size(), group.Rank(me)}, []int{3, column})
		sum := []int64{int64(me)}
		if err := dist.AllReduce(device, dist.Sum, sum, dist.InGroup(group)); err != nil {
			return err
		}
		is(t, "sum", sum[0], int64(9*row+3))
		fails(t, group.Close(), dist.ErrFailedPrecondition, "strategy's")
		var work *dist.Work
		if err := dist.AllReduce(device, dist.Sum, sum, dist.Async(&work)); err != nil {
			return err
		}
		defer work.Close()
		err = work.Wait()
		is(t, "sum", sum[0], int64(3*3+3*12))
		mu.Lock()
		defer mu.Unlock()
		kept = group
		return err
	})
	if err := s.Run(background, func(r *dist.Replica) error {
		_, _, err := r.DeviceAxis("row")
		fails(t, err, dist.ErrFailedPrecondition, "logical devices")
		_, err = r.DeviceCoordinates()
		fails(t, err, dist.ErrFailedPrecondition, "")
		_, err = r.DeviceAxisGroup("row")
		fails(t, err, dist.ErrFailedPrecondition, "logical devices")
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	assignment := s.DeviceAssignment()
	is(t, "assignment", assignment.NumLogicalDevices(), 6)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	is(t, "ended", []int{kept.Size(), assignment.NumLogicalDevices(), s.NumLogicalDevices()}, []int{0, 0, 0})
	is(t, "without", newStrategy(t, dist.Options{Replicas: 1}).DeviceAssignment(), (*dist.DeviceAssignment)(nil))
}

func TestHalosAndResharding(t *testing.T) {
	s := newMesh(t, 1, 4, dist.Options{})
	onDevices(t, s, func(device *dist.Replica) error {
		me := int64(device.ID())
		out := make([]int64, 4)
		halo := dist.Halo{Parts: []int{4}, Low: []int{1}, High: []int{1}, Edges: []dist.Edge{dist.EdgeWrap}}
		if err := device.HaloExchange(dist.Of([]int64{2 * me, 2*me + 1}), halo, dist.Of(out), dist.Tag("halo")); err != nil {
			return err
		}
		is(t, "halo", out, []int64{(2*me + 7) % 8, 2 * me, 2*me + 1, (2*me + 2) % 8})
		for _, halo := range []dist.Halo{{Parts: []int{4}, Low: []int{1, 1}}, {Parts: []int{4}, High: []int{}},
			{Parts: []int{4}, Edges: []dist.Edge{0, 0}}} {
			err := device.HaloExchange(dist.Of(out), halo, dist.Of(out))
			fails(t, err, dist.ErrInvalidArgument, "its Parts 1")
		}
		fails(t, device.HaloExchange(nil, halo, dist.Of(out)), dist.ErrInvalidArgument, "nil")

		split := &dist.Partition{Shape: []int{8}, Dimensions: []int{4}, NumLogicalDevices: 4}
		assign := &dist.Partition{Kind: dist.PartitionAssign, Shape: []int{8}, NumLogicalDevices: 4, LogicalDevice: 2}
		var to dist.Array
		whole := make([]int64, 8)
		if me == 2 {
			to = dist.Of(whole)
		}
		if err := device.Reshard(split, assign, dist.Of([]int64{2 * me, 2*me + 1}), to); err != nil {
			return err
		}
		if me == 2 {
			is(t, "whole", whole, []int64{0, 1, 2, 3, 4, 5, 6, 7})
		}
		part := make([]int64, 2)
		if err := device.Reshard(assign, split, to, dist.Of(part)); err != nil {
			return err
		}
		is(t, "part", part, []int64{2 * me, 2*me + 1})
		fails(t, device.Reshard(nil, split, to, dist.Of(part)), dist.ErrInvalidArgument, "nil")
		return nil
	})
}
