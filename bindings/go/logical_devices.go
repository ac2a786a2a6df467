// SPDX-License-Identifier: Apache-2.0

package dist

import (
	"context"
	"errors"
	"sync"
	"time"

	"libdist.example/dist/internal/cdist"
)

// MeshAxis is a named axis of a replica's logical devices.
type MeshAxis struct {
	Name string
	Size int
}

func (u *uses) setAxes(native cdist.Dist_strategy_options, axes []MeshAxis) {
	names, sizes := make([]string, len(axes)), make([]int32, len(axes))
	for i, axis := range axes {
		names[i], sizes[i] = u.text(axis.Name), int32(u.int32("MeshAxis.Size", axis.Size))
	}
	if len(axes) > 0 {
		native.Set_axes(names, sizes, int64(len(axes)))
	}
}

// NumLogicalDevices is how many logical devices each replica has: 1 for strategies of other kinds than Mesh; 0 for nil
// and for a closed one.
func (s *Strategy) NumLogicalDevices() int {
	var u uses
	defer u.end()
	return cdist.Dist_strategy_num_logical_devices(u.strategy(s))
}

// DeviceAssignment is the one that the strategy was made with, which ends with the strategy; nil where there is none.
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

// SplitOptions are the rare choices of SplitToLogicalDevices.
type SplitOptions struct {
	Uneven bool // sizes that do not divide are split as evenly as possible
}

// divide is one division of a value.
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

// SplitToLogicalDevices splits a tensor over the replica's logical devices, into as many parts of each dimension as
// parts says (of a nest: each leaf). The result is a ShardedValue: it still reads as the whole tensor; its items, and
// Value.Shard, are the shards. Nothing is copied. options may be nil.
func (r *Replica) SplitToLogicalDevices(v *Value, parts []int, options *SplitOptions) (*Value, error) {
	return r.divide(v, func(replica, value int64, out *int64) error {
		native := cdist.NewDist_split_options()
		defer cdist.DeleteDist_split_options(native)
		native.SetUneven(intOf(options != nil && options.Uneven))
		return cdist.Split_to_logical_devices(replica, value, int64sOf(parts), int64(len(parts)), native, out)
	})
}

// AssignToLogicalDevice gives a tensor to one logical device; the others have nothing.
func (r *Replica) AssignToLogicalDevice(v *Value, logicalDevice int) (*Value, error) {
	return r.divide(v, func(replica, value int64, out *int64) error {
		if err := checkInt32("logicalDevice", logicalDevice); err != nil {
			return err
		}
		return cdist.Dist_assign_to_logical_device(replica, value, logicalDevice, out)
	})
}

// ReplicateToLogicalDevices gives a tensor to each logical device: all see the same memory.
func (r *Replica) ReplicateToLogicalDevices(v *Value) (*Value, error) {
	return r.divide(v, cdist.Dist_replicate_to_logical_devices)
}

// DevicesOptions are the rare choices of RunOnDevices.
type DevicesOptions struct {
	Context context.Context // whose end ends this run on devices, and no other; nil: the run's alone
	Kwargs  *Value          // a dictionary of named arguments
	Timeout time.Duration   // of the whole run on devices; 0: none
	// Results say how the devices' results are joined: no partition, one for all leaves, or one for each leaf in the
	// order of the nest (dictionaries: by key). Where a leaf has none, the rules of dist_run_on_devices in mesh.h hold.
	// The shape of a partition is not read.
	Results []*Partition
}

// devicesRun is one call of RunOnDevices: what the devices share on Go's side.
type devicesRun struct {
	replica *Replica
	ctx     context.Context // nil: the replica's
	fn      ValuesFunc

	mu     sync.Mutex
	failed []error // one for each device
	left   int
}

func (r *devicesRun) onValues() ValuesFunc { return r.fn }

// call runs the program's function as one logical device. It is on a thread of libdist's, or has libdist below it.
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

// result is the error of the device that the report names, as its function returned it.
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

// over says whether no device can come any more.
func (r *devicesRun) over(err error) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !errors.Is(err, ErrDeadlineExceeded) || r.left == len(r.failed)
}

// RunOnDevices calls fn on every logical device of the replica, at the same time, and waits for all of them. device.ID()
// is the logical device; wherever args has a sharded tensor, at any depth, it finds its shard, or nothing of a tensor that
// is assigned to another. args is a list or tuple, or nil; options may be nil.
//
// Results of the same structure are joined leaf by leaf: by options.Results; else tensors that tile as the first split
// in args does, or that have equal bits. The result is nil where no device gave one.
//
// If a device fails, the others' pending and later collectives fail with ErrAborted, and the error is that of the device
// that failed first, as fn returned it. That is no failure of the replica unless its function returns it.
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
	native := cdist.NewDist_devices_options()
	defer cdist.DeleteDist_devices_options(native)
	native.SetTimeout_ns(int64(options.Timeout))
	cancel, err := cancelWith(options.Context)
	if err != nil {
		return nil, err
	}
	defer cancel.endInside()
	native.SetCancel(cancel.handle())
	for _, result := range options.Results {
		partition := result.native(&u)
		defer deletePartition(partition)
		native.Add_result(partition)
	}
	if u.err != nil {
		return nil, u.err
	}
	if r == nil {
		r = &Replica{shared: &failures{}} // libdist says what it has to say
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
