// SPDX-License-Identifier: Apache-2.0

package dist

import (
	"sync"
	"sync/atomic"

	"libdist.example/dist/internal/cdist"
)

// CrossDeviceFunctions are the program's own way to reduce, broadcast and gather values from outside runs. Each gets
// tensors and writes those that libdist has made; they are there for the time of the call.
type CrossDeviceFunctions struct {
	// Reduce: out = components[0] op ... op components[n-1]; out has the shape, and the dtype that Mean gives.
	Reduce func(op ReduceOp, components []RawTensor, out RawTensor) error
	// Broadcast: every copy = value; nil: all replicas share the value, which does not change.
	Broadcast func(value RawTensor, copies []RawTensor) error
	// Gather: out = the components one after another along axis >= 0; nil: libdist's.
	Gather func(components []RawTensor, axis int, out RawTensor) error
}

// StrategyFunctions are a strategy of the program's own: they take the place of libdist's where they are not nil, for
// values from outside runs. Its devices are Options.Devices.
type StrategyFunctions struct {
	SharedCopy bool // all replicas share one copy of a variable; false: each has its own
	CrossDeviceFunctions
}

// hostCall is what a token of such functions stands for. Their errors are found by the call that they were for.
type hostCall struct {
	functions CrossDeviceFunctions
	operators
	failures
	token int64
	turn  sync.Mutex   // of calls with an operator
	users atomic.Int32 // the CrossDevice, and each strategy that was made with it
}

func (c *hostCall) take() *hostCall {
	c.users.Add(1)
	return c
}

func (c *hostCall) drop() {
	if c != nil && c.users.Add(-1) == 0 {
		forget(c.token)
	}
}

// do is one call in which the functions may be called. An operator has nobody to tell of its panic, so that calls with
// one take turns: each then has its own.
func (c *hostCall) do(call func() error) error {
	if c.operator != nil {
		c.turn.Lock()
		defer c.turn.Unlock()
		c.begin()
	}
	err := call()
	if err != nil {
		err = c.failures.own(err)
	}
	return c.operators.own(err)
}

// Reduce_components is called by libdist for a Reduce of the program's.
func (callbacks) Reduce_components(token int64, op int, components, n, out int64) int {
	c := registered[*hostCall](token)
	return c.lend(func(owner *object) error {
		return c.functions.Reduce(ReduceOp(op), tensorsAt(components, n, owner), tensorAt(out, 0, owner))
	})
}

// Broadcast_copies is called by libdist for a Broadcast of the program's.
func (callbacks) Broadcast_copies(token, value, copies, n int64) int {
	c := registered[*hostCall](token)
	return c.lend(func(owner *object) error {
		return c.functions.Broadcast(tensorAt(value, 0, owner), tensorsAt(copies, n, owner))
	})
}

// Gather_components is called by libdist for a Gather of the program's.
func (callbacks) Gather_components(token, components, n int64, axis int, out int64) int {
	c := registered[*hostCall](token)
	return c.lend(func(owner *object) error {
		return c.functions.Gather(tensorsAt(components, n, owner), axis, tensorAt(out, 0, owner))
	})
}

// set gives the functions to a strategy's options.
func (f *StrategyFunctions) set(s *Strategy, native cdist.Dist_strategy_options) {
	if f == nil {
		return
	}
	s.functions = &hostCall{functions: f.CrossDeviceFunctions}
	native.Set_functions(s.held.keep(s.functions), intOf(f.SharedCopy), intOf(f.Reduce != nil), intOf(f.Broadcast != nil),
		intOf(f.Gather != nil))
}

// CrossDevice reduces, broadcasts and gathers values from outside runs (TensorFlow: CrossDeviceOps), for a strategy's
// options or for use without one.
type CrossDevice struct {
	object
	call *hostCall
}

// CrossDeviceOptions of NewCrossDevice; zero fields mean the default.
type CrossDeviceOptions struct {
	Kind           CrossDeviceKind
	NumPacks       int            // taken, and of no consequence
	ReduceToDevice string         // of CrossDeviceReductionToOneDevice: a device's name; "": any
	Accumulate     ReduceOperator // of CrossDeviceReductionToOneDevice: instead of +; Mean divides by n afterwards
	Functions      *CrossDeviceFunctions
	// AccumulateElementBytes is how many bytes an element of Accumulate has; 0: the tensors'. See ReduceElement.
	AccumulateElementBytes int
}

// NewCrossDevice makes cross-device operations.
func NewCrossDevice(options CrossDeviceOptions) (*CrossDevice, error) {
	var u uses
	device, numPacks := u.text(options.ReduceToDevice), u.int32("CrossDeviceOptions.NumPacks", options.NumPacks)
	if u.err != nil {
		return nil, u.err
	}
	native := cdist.NewDist_cross_device_options()
	defer cdist.DeleteDist_cross_device_options(native)
	native.Count_memory()
	native.SetKind(int32Of(int(options.Kind)))
	native.SetNum_packs(numPacks)
	if device != "" {
		native.SetReduce_to_device(device)
	}
	native.SetAccumulate_element_bytes(int64(options.AccumulateElementBytes))
	call := &hostCall{}
	call.token = register(call.take())
	if options.Accumulate != nil {
		call.operator, call.elementBytes = options.Accumulate, int64(options.AccumulateElementBytes)
		native.Set_accumulate(call.token)
	}
	if f := options.Functions; f != nil {
		if f.Reduce == nil {
			call.drop()
			return nil, newError(ErrInvalidArgument, "CrossDeviceFunctions.Reduce is nil: it is required")
		}
		call.functions = *f
		native.Set_functions(call.token, intOf(f.Broadcast != nil), intOf(f.Gather != nil))
	}
	var out int64
	if err := cdist.Dist_cross_device_create(native, &out); err != nil {
		call.drop()
		return nil, fromNative(err)
	}
	c := &CrossDevice{call: call}
	c.open(out, func(native int64) {
		cdist.Dist_cross_device_destroy(native)
		call.drop()
	}, nil)
	return c, nil
}

func (u *uses) crossDevice(c *CrossDevice) int64 {
	if c == nil {
		return 0
	}
	return u.take(&c.object, "cross-device object")
}

// Close ends them; strategies made with them go on, and end them when they have ended.
func (c *CrossDevice) Close() error {
	if c != nil {
		c.close()
	}
	return nil
}

// with calls something of the handle; the error is the program's own where it is of its functions.
func (c *CrossDevice) with(u *uses, call func(native int64) error) error {
	native := u.crossDevice(c)
	if u.err != nil {
		return u.err
	}
	if c == nil {
		return fromNative(call(native))
	}
	return c.call.do(func() error { return call(native) })
}

// Kind is what they were made with; 0 for nil.
func (c *CrossDevice) Kind() (kind CrossDeviceKind) {
	var u uses
	defer u.end()
	_ = c.with(&u, func(native int64) error {
		kind = CrossDeviceKind(cdist.Dist_cross_device_kind(native))
		return nil
	})
	return kind
}

// NumPacks is what they were made with; 0 for nil.
func (c *CrossDevice) NumPacks() (n int) {
	var u uses
	defer u.end()
	_ = c.with(&u, func(native int64) error {
		n = cdist.Dist_cross_device_num_packs(native)
		return nil
	})
	return n
}

// Device is the full name of the device to reduce to; "" where there is none.
func (c *CrossDevice) Device() (name string) {
	var u uses
	defer u.end()
	_ = c.with(&u, func(native int64) error {
		name = cdist.Dist_cross_device_device(native)
		return nil
	})
	return name
}

// Reduce is Strategy.ReduceTo without a strategy: there are as many replicas as the value has components.
func (c *CrossDevice) Reduce(op ReduceOp, v *Value, to *Destination) (*Value, error) {
	var u uses
	defer u.end()
	value, places := u.value(v), u.destination(to)
	defer places.end()
	var out int64
	err := c.with(&u, func(native int64) error {
		return cdist.Dist_cross_device_reduce(native, int32Of(int(op)), value, places.Get(), &out)
	})
	return adopt(out, err)
}

// BatchReduce is Strategy.BatchReduceTo without a strategy.
func (c *CrossDevice) BatchReduce(op ReduceOp, values []*Value, to []Destination) ([]*Value, error) {
	var u uses
	defer u.end()
	handles, places := u.values(values), u.destinations(to, len(values))
	defer places.end()
	out := make([]int64, len(values)+1)
	err := c.with(&u, func(native int64) error {
		return cdist.Dist_cross_device_batch_reduce(native, int32Of(int(op)), handles, places.Get(),
			int64(len(values)), out)
	})
	return adoptAll(out[:len(values)], err)
}

// Broadcast is Strategy.BroadcastTo without a strategy: to as many replicas as the destination has.
func (c *CrossDevice) Broadcast(v *Value, to *Destination) (*Value, error) {
	var u uses
	defer u.end()
	value, places := u.value(v), u.destination(to)
	defer places.end()
	var out int64
	err := c.with(&u, func(native int64) error {
		return cdist.Dist_cross_device_broadcast(native, value, places.Get(), &out)
	})
	return adopt(out, err)
}

// Gather is Strategy.Gather without a strategy.
func (c *CrossDevice) Gather(v *Value, axis int) (*Value, error) {
	var u uses
	defer u.end()
	value, along := u.value(v), u.int32("axis", axis)
	var out int64
	err := c.with(&u, func(native int64) error {
		return cdist.Dist_cross_device_gather(native, value, along, &out)
	})
	return adopt(out, err)
}
