// SPDX-License-Identifier: Apache-2.0

package dist

import (
	"sync"
	"sync/atomic"

	"libdist.example/dist/internal/cdist"
)

// CrossDeviceFunctions lets a program implement how values outside runs are reduced, broadcast and gathered.
// The functions write their results to tensors that libdist has allocated. All tensors are valid only during
// the call.
type CrossDeviceFunctions struct {
	// Reduce computes out = components[0] op ... op components[n-1]. out has the shape of the components, and
	// the dtype of their Mean.
	Reduce func(op ReduceOp, components []RawTensor, out RawTensor) error
	// Broadcast copies value to every copy. If it is nil, all replicas share the value, which does not change.
	Broadcast func(value RawTensor, copies []RawTensor) error
	// Gather concatenates the components along axis, which is at least 0, to out. If it is nil, libdist does it.
	Gather func(components []RawTensor, axis int, out RawTensor) error
}

// StrategyFunctions defines a custom strategy. Functions that are not nil replace those of libdist for values
// outside runs. Options.Devices names the devices.
type StrategyFunctions struct {
	SharedCopy bool // true: all replicas share one copy of a variable; false: each has its own
	CrossDeviceFunctions
}

// hostCall has the functions of a CrossDevice or of a strategy. The call that uses them finds their errors here.
type hostCall struct {
	*attached
	computes bool         // there is an operator
	turn     sync.Mutex   // of calls with an operator
	users    atomic.Int32 // the CrossDevice, and each strategy that was made with it
}

func (c *hostCall) take() *hostCall {
	c.users.Add(1)
	return c
}

func (c *hostCall) drop() {
	if c != nil && c.users.Add(-1) == 0 {
		c.attached.end()
	}
}

// do makes a call that may call the functions. An operator cannot return its panic, so calls with an operator
// run one after another, and each finds its own panic.
func (c *hostCall) do(call func() error) error {
	if c.computes {
		c.turn.Lock()
		defer c.turn.Unlock()
		c.begin()
	}
	return c.own(call())
}

// crossDeviceCall is the object behind the token of cross-device functions.
type crossDeviceCall struct {
	*failures
	functions CrossDeviceFunctions
}

// Reduce_components is called by libdist for a Reduce function of the program.
func (callbacks) Reduce_components(token int64, op int, components, n, out int64) int {
	c := registered[*crossDeviceCall](token)
	return c.lend(func(owner *object) error {
		return c.functions.Reduce(ReduceOp(op), tensorsAt(components, n, owner), tensorAt(out, 0, owner))
	})
}

// Broadcast_copies is called by libdist for a Broadcast function of the program.
func (callbacks) Broadcast_copies(token, value, copies, n int64) int {
	c := registered[*crossDeviceCall](token)
	return c.lend(func(owner *object) error {
		return c.functions.Broadcast(tensorAt(value, 0, owner), tensorsAt(copies, n, owner))
	})
}

// Gather_components is called by libdist for a Gather function of the program.
func (callbacks) Gather_components(token, components, n int64, axis int, out int64) int {
	c := registered[*crossDeviceCall](token)
	return c.lend(func(owner *object) error {
		return c.functions.Gather(tensorsAt(components, n, owner), axis, tensorAt(out, 0, owner))
	})
}

// strategyFunctions sets the functions of a custom strategy.
func (u *uses) strategyFunctions(native cdist.Dist_strategy_options, f *StrategyFunctions) {
	if f == nil {
		return
	}
	token := u.token(&crossDeviceCall{u.failures(), f.CrossDeviceFunctions})
	native.Set_functions(token, intOf(f.SharedCopy), intOf(f.Reduce != nil), intOf(f.Broadcast != nil), intOf(f.Gather != nil))
}

// crossDeviceFunctions sets the functions of a CrossDevice.
func (u *uses) crossDeviceFunctions(native cdist.Dist_cross_device_options, f *CrossDeviceFunctions) {
	if f == nil {
		return
	}
	if f.Reduce == nil {
		u.fail(newError(ErrInvalidArgument, "CrossDeviceFunctions.Reduce is nil: it is required"))
	}
	native.Set_functions(u.token(&crossDeviceCall{u.failures(), *f}), intOf(f.Broadcast != nil), intOf(f.Gather != nil))
}

// A CrossDevice reduces, broadcasts and gathers values outside runs (TensorFlow: CrossDeviceOps). Set it in
// Options.CrossDevice, or use it without a strategy.
type CrossDevice struct {
	object
	call *hostCall
}

// NewCrossDevice returns new cross-device operations. The caller must close them.
func NewCrossDevice(options CrossDeviceOptions) (*CrossDevice, error) {
	var u uses
	defer u.end()
	native := options.native(&u)
	defer cdist.DeleteDist_cross_device_options(native)
	native.Count_memory()
	if u.err != nil {
		return nil, u.err
	}
	var out int64
	if err := cdist.Dist_cross_device_create(native, &out); err != nil {
		return nil, fromNative(err)
	}
	call := (&hostCall{attached: u.keep(), computes: options.Accumulate != nil}).take()
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
	return u.takeMade(&c.object, "cross-device object")
}

// Close releases the operations. Strategies that use them keep them.
func (c *CrossDevice) Close() error {
	if c != nil {
		c.close()
	}
	return nil
}

// with calls a function with the handle. It returns an error of a host callback unchanged.
func (c *CrossDevice) with(u *uses, call func(native int64) error) error {
	native := u.crossDevice(c)
	if u.err != nil {
		return u.err
	}
	if c == nil || c.call == nil {
		return fromNative(call(native))
	}
	return c.call.do(func() error { return call(native) })
}

// Kind returns the kind with which the operations were created; 0 for nil.
func (c *CrossDevice) Kind() (kind CrossDeviceKind) {
	var u uses
	defer u.end()
	_ = c.with(&u, func(native int64) error {
		kind = CrossDeviceKind(cdist.Dist_cross_device_kind_of(native))
		return nil
	})
	return kind
}

// Device returns the full name of the device to which the operations reduce, or "" if there is none.
func (c *CrossDevice) Device() (name string) {
	var u uses
	defer u.end()
	_ = c.with(&u, func(native int64) error {
		name = cdist.Dist_cross_device_device(native)
		return nil
	})
	return name
}

// Reduce reduces a value without a strategy, like [Strategy.ReduceTo]. The number of replicas is the number
// of the value's components. The caller must close the result.
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

// BatchReduce reduces several values without a strategy, like [Strategy.BatchReduceTo]. The caller must close
// the results.
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

// Broadcast places a value at a destination without a strategy, like [Strategy.BroadcastTo]. The destination
// determines the number of replicas. The caller must close the result.
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

// Gather concatenates the components of a value without a strategy, like [Strategy.Gather]. The caller must
// close the result.
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
