// SPDX-License-Identifier: Apache-2.0

package dist

import (
	"context"
	"errors"
	"sync"

	"libdist.example/dist/internal/cdist"
)

// A MeshAxis is a named axis of a replica's logical devices.
type MeshAxis struct {
	Name string
	Size int
}

// axes sets the axes of a mesh.
func (u *uses) axes(native cdist.Dist_strategy_options, axes []MeshAxis) {
	names, sizes := make([]string, len(axes)), make([]int32, len(axes))
	for i, axis := range axes {
		names[i], sizes[i] = u.text(axis.Name), int32(u.int32("MeshAxis.Size", axis.Size))
	}
	if len(axes) > 0 {
		native.Set_axes(names, sizes, int64(len(axes)))
	}
}

// NumLogicalDevices returns the number of logical devices of each replica. It is 1 for strategies of other
// kinds than [Mesh], and 0 for a nil or closed strategy.
func (s *Strategy) NumLogicalDevices() int {
	var u uses
	defer u.end()
	return cdist.Dist_strategy_num_logical_devices(u.strategy(s))
}

// DeviceAssignment returns the assignment with which the strategy was created, or nil if it has none. The
// assignment is valid until the strategy is closed.
func (s *Strategy) DeviceAssignment() *DeviceAssignment {
	var u uses
	defer u.end()
	native := cdist.Dist_strategy_device_assignment(u.strategy(s))
	if native == 0 {
		return nil
	}
	a := &DeviceAssignment{of: s}
	a.open(native, nil, nil)
	return a
}

// divide divides a value over logical devices.
func (r *Replica) divide(v *Value, call func(replica, value int64, out *int64) error) (*Value, error) {
	var u uses
	defer u.end()
	replica, value := u.replica(r), u.value(v)
	if u.err != nil {
		return nil, u.err
	}
	var out int64
	err := call(replica, value, &out)
	return adopt(out, err)
}

// SplitToLogicalDevices splits a tensor over the replica's logical devices, into parts[i] parts along
// dimension i. Each leaf of a nested value is split. The result is a [ShardedValue]. It can be used like the
// whole tensor; its items, and [Value.Shard], are the shards. Nothing is copied. options may be nil. The
// caller must close the result.
func (r *Replica) SplitToLogicalDevices(v *Value, parts []int, options *SplitOptions) (*Value, error) {
	return r.divide(v, func(replica, value int64, out *int64) error {
		var u uses
		defer u.end()
		native := options.native(&u)
		defer cdist.DeleteDist_split_options(native)
		if u.err != nil {
			return u.err
		}
		return cdist.Split_to_logical_devices(replica, value, int64sOf(parts), int64(len(parts)), native, out)
	})
}

// AssignToLogicalDevice assigns a tensor to one logical device; the other devices have nothing. The caller
// must close the result.
func (r *Replica) AssignToLogicalDevice(v *Value, logicalDevice int) (*Value, error) {
	return r.divide(v, func(replica, value int64, out *int64) error {
		if err := checkInt32("logicalDevice", logicalDevice); err != nil {
			return err
		}
		return cdist.Dist_assign_to_logical_device(replica, value, logicalDevice, out)
	})
}

// ReplicateToLogicalDevices gives a tensor to every logical device. All devices see the same memory. The
// caller must close the result.
func (r *Replica) ReplicateToLogicalDevices(v *Value) (*Value, error) {
	return r.divide(v, cdist.Dist_replicate_to_logical_devices)
}

// results sets how results are joined.
func (u *uses) results(native cdist.Dist_devices_options, partitions []*Partition) {
	for _, one := range partitions {
		partition := one.native(u)
		u.later(func() { deletePartition(partition) })
		native.Add_result(partition)
	}
}

// devicesRun is one call of RunOnDevices: the state that its devices share.
type devicesRun struct {
	replica *Replica
	ctx     context.Context // nil: the replica's
	fn      ValuesFunc

	mu     sync.Mutex
	failed []error // one for each device
	left   int
}

func (r *devicesRun) onValues() ValuesFunc { return r.fn }

// call runs the program's function as one logical device, on a libdist thread or on a thread that C code
// called.
func (r *devicesRun) call(native int64, fn func(*Replica) error) (status int) {
	device := newReplica(native, r.replica.strategy, r.replica.shared)
	device.ctx = r.ctx
	if r.ctx == nil {
		device.ctx = r.replica.ctx
	}
	defer device.end()
	guard := onNative
	if r.replica.strategy.hop {
		guard = func(id int, fn func() error) error { return onGoroutine(native, id, fn) }
	}
	err := guard(r.replica.id, func() error { return fn(device) })
	if panicked, ok := err.(*PanicError); ok && panicked.Replica >= 0 && panicked.LogicalDevice < 0 {
		panicked.LogicalDevice = device.id
	}
	r.mu.Lock()
	r.failed[device.id] = err
	r.left++
	r.mu.Unlock()
	if err != nil {
		return tell(err)
	}
	return 0
}

// result returns the error of the device that the report names, as its function returned it.
func (r *devicesRun) result(native error) error {
	report, ok := native.(*Error)
	if !ok {
		return native
	}
	r.mu.Lock() // devices that a deadline left inside still write
	defer r.mu.Unlock()
	if own := ownOf(r.failed, report.LogicalDevice); own != nil {
		return own
	}
	return r.replica.shared.own(native)
}

// over reports whether no device can start any more.
func (r *devicesRun) over(err error) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !errors.Is(err, ErrDeadlineExceeded) || r.left == len(r.failed)
}

// RunOnDevices calls fn on every logical device of the replica, concurrently, and waits for all of them. In
// fn, the ID of the *Replica is the number of the logical device. Each sharded tensor in args, at any depth,
// is replaced by the shard of that device, or by a value of kind [NoneValue] if the tensor is assigned to
// another device. args is a list, a tuple or nil; options may be nil. The caller must close the result.
//
// All results must have the same structure. They are joined leaf by leaf, according to options.Results.
// Without it, tensors that fit together as tiles, divided like the first split tensor in args, become one
// split tensor, and tensors with equal bits become one replicated tensor. The result is nil if no device
// returned one.
//
// If a device fails, pending and later collectives of the others fail with [ErrAborted], and RunOnDevices
// returns the error of the device that failed first, as fn returned it. The replica itself fails only if its
// function returns that error.
func (r *Replica) RunOnDevices(fn ValuesFunc, args *Value, options *DevicesOptions) (*Value, error) {
	var u uses
	defer u.end()
	if options == nil {
		options = &DevicesOptions{}
	}
	replica, argsHandle, kwargsHandle := u.replica(r), u.value(args), u.value(options.Kwargs)
	if u.err != nil {
		return nil, u.err
	}
	native := options.native(&u)
	defer cdist.DeleteDist_devices_options(native)
	cancel, err := cancelWith(options.Context)
	if err != nil {
		return nil, err
	}
	defer cancel.endInside()
	native.SetCancel(cancel.handle())
	if u.err != nil {
		return nil, u.err
	}
	if r == nil {
		r = &Replica{shared: &failures{}} // libdist returns the error
	}
	run := &devicesRun{replica: r, ctx: options.Context, fn: fn, failed: make([]error, r.strategy.NumLogicalDevices())}
	token := registerIf(fn != nil, run)
	var out int64
	err = fromNative(cdist.Dist_run_on_devices(replica, token, argsHandle, kwargsHandle, native, &out))
	if run.over(err) {
		forget(token)
	} else { // devices are still inside, after a deadline
		r.strategy.held.add(token)
	}
	return adopt(out, r.told(byContext(options.Context, run.result(err))))
}
