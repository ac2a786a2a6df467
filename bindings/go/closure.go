// SPDX-License-Identifier: Apache-2.0

package dist

import (
	"context"
	"sync"

	"libdist.example/dist/internal/cdist"
)

// Closure is a function of a worker's, while it runs: what it reads and changes of the variables of the parameter servers.
// Its changes go there when it has returned well, all at once and once only, so that its own reads do not see them. It is
// for the time of its function: later calls are ErrFailedPrecondition.
type Closure struct {
	name   string
	id     int64
	worker int
	ctx    *methodContext
	mu     sync.Mutex // one call at a time, whichever goroutine's
	native int64      // 0: the function has returned
}

var errClosureCancelled = newError(ErrCancelled, "nobody wants the closure's result any more")

func newClosure(native int64) *Closure {
	return &Closure{
		name:   cdist.Dist_closure_name(native),
		id:     cdist.Dist_closure_id(native),
		worker: cdist.Dist_closure_worker(native),
		ctx:    newMethodContext(cdist.Dist_closure_cancel(native), 0, errClosureCancelled),
		native: native,
	}
}

// end is where the function has returned.
func (c *Closure) end() {
	c.mu.Lock()
	c.native = 0
	c.mu.Unlock()
	c.ctx.end()
}

// with calls something of the closure's handle.
func (c *Closure) with(call func(native int64) error) error {
	if c == nil {
		return fromNative(call(0))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.native == 0 {
		return newError(ErrFailedPrecondition, "the closure is over: its function has returned")
	}
	return fromNative(call(c.native))
}

// Name is the name by which it was scheduled; "" for nil.
func (c *Closure) Name() string {
	if c == nil {
		return ""
	}
	return c.name
}

// ID is its number: how many closures the coordinator has scheduled before it; -1 for nil, and where the function makes a
// per-worker value.
func (c *Closure) ID() int64 {
	if c == nil {
		return -1
	}
	return c.id
}

// Worker is the index of the task that runs it; -1 for nil.
func (c *Closure) Worker() int {
	if c == nil {
		return -1
	}
	return c.worker
}

// Context is over when nobody wants the closure's result any more, for another one has failed or the coordinator is gone,
// and when its function has returned; in between libdist is asked every few milliseconds, and at once by its Err. It is for
// what the function waits in.
func (c *Closure) Context() context.Context {
	if c == nil {
		return context.Background()
	}
	return c.ctx
}

// Read gives variables: what they are now, or were at most MaxStaleness of this worker's closures ago. Those of one parameter
// server are of one moment. The values are the caller's to close. ErrAborted says that a parameter server is lost: return it,
// for the coordinator knows what to do.
func (c *Closure) Read(names ...string) ([]*Value, error) {
	return readVariables(c, names, cdist.Dist_closure_read)
}

// ReadRows gives rows of a variable, as an embedding is looked up: row k of the result is row indices[k], int32 or int64. It
// caches nothing.
func (c *Closure) ReadRows(name string, indices *Value) (*Value, error) {
	return readRows(c, name, indices, cdist.Dist_closure_read_rows)
}

// Assign changes a variable, once the closure has ended well. The value is held until then; its elements must stay as they
// are.
func (c *Closure) Assign(name string, how AssignHow, value *Value) error {
	return changeVariable(c, name, int(how), value, cdist.Dist_closure_assign)
}

// Scatter changes rows of a variable by indexed slices, row by row, once the closure has ended well. Otherwise it is as
// Assign.
func (c *Closure) Scatter(name string, how ScatterHow, slices *Value) error {
	return changeVariable(c, name, int(how), slices, cdist.Dist_closure_scatter)
}

// Update changes variables that lie alike by a function that the parameter servers have registered, Server.RegisterUpdate,
// once the closure has ended well. arguments may be nil; otherwise it is as Assign. What the function fails with is the
// closure's error.
func (c *Closure) Update(function string, names []string, arguments *Value) error {
	return updateVariables(c, function, names, arguments, cdist.Dist_closure_update)
}

// PerWorker is what Coordinator.CreatePerWorker has made on this worker, to be closed: Value.Object has what its function
// gave as Strategy.NewObject.
func (c *Closure) PerWorker(name string) (*Value, error) {
	if err := checkText(name); err != nil {
		return nil, err
	}
	var out int64
	err := c.with(func(native int64) error { return cdist.Dist_closure_per_worker(native, name, &out) })
	return adopt(out, err)
}

// serversUser has a handle by which variables of parameter servers are reached: a closure, or a coordinator.
type serversUser interface {
	with(call func(native int64) error) error
}

func readVariables(s serversUser, names []string,
	read func(native int64, names []string, n int64, out []int64) error) ([]*Value, error) {
	var u uses
	if u.texts(names); u.err != nil {
		return nil, u.err
	}
	out := make([]int64, len(names))
	err := s.with(func(native int64) error { return read(native, names, int64(len(names)), out) })
	if err != nil {
		return nil, err
	}
	values := make([]*Value, len(out))
	for i, native := range out {
		values[i] = ownValue(native)
	}
	return values, nil
}

func readRows(s serversUser, name string, indices *Value,
	read func(native int64, name string, indices int64, out *int64) error) (*Value, error) {
	var u uses
	defer u.end()
	name, handle := u.text(name), u.value(indices)
	if u.err != nil {
		return nil, u.err
	}
	var out int64
	err := s.with(func(native int64) error { return read(native, name, handle, &out) })
	return adopt(out, err)
}

func changeVariable(s serversUser, name string, how int, value *Value,
	change func(native int64, name string, how int, value int64) error) error {
	var u uses
	defer u.end()
	name, handle := u.text(name), u.value(value)
	if u.err != nil {
		return u.err
	}
	return s.with(func(native int64) error { return change(native, name, int32Of(how), handle) })
}

func updateVariables(s serversUser, function string, names []string, arguments *Value,
	update func(native int64, function string, names []string, n, arguments int64) error) error {
	var u uses
	defer u.end()
	function, names, handle := u.text(function), u.texts(names), u.value(arguments)
	if u.err != nil {
		return u.err
	}
	return s.with(func(native int64) error {
		return update(native, function, names, int64(len(names)), handle)
	})
}
