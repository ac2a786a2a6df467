// SPDX-License-Identifier: Apache-2.0

package dist

import (
	"context"
	"sync"

	"libdist.example/dist/internal/cdist"
)

// A Closure is the running call of a [ClosureFunc] on a worker. It reads and changes variables on the
// parameter servers. libdist applies its changes together, exactly once, after the function has returned
// without an error. The closure's own reads therefore do not see them. A Closure is valid only while its
// function runs; later calls fail with [ErrFailedPrecondition].
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

// end is called when the function has returned.
func (c *Closure) end() {
	c.mu.Lock()
	c.native = 0
	c.mu.Unlock()
	c.ctx.end()
}

// with calls a function with the closure's handle.
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

// Name returns the name under which the closure was scheduled; "" for nil.
func (c *Closure) Name() string {
	if c == nil {
		return ""
	}
	return c.name
}

// ID returns the number of the closure: how many closures the coordinator scheduled before it. It returns -1
// for nil, and if the function creates a per-worker value.
func (c *Closure) ID() int64 {
	if c == nil {
		return -1
	}
	return c.id
}

// Worker returns the index of the task that runs the closure; -1 for nil.
func (c *Closure) Worker() int {
	if c == nil {
		return -1
	}
	return c.worker
}

// Context returns a context for calls in which the function waits. It ends when the function returns, or when
// the closure's result is no longer needed because another closure has failed or the coordinator is gone. The
// context polls libdist every few milliseconds; its Err method checks immediately.
func (c *Closure) Context() context.Context {
	if c == nil {
		return context.Background()
	}
	return c.ctx
}

// Read reads variables. A value may be stale by at most MaxStaleness closures of this worker; see
// [PSVariableOptions]. All values from one parameter server are from the same moment. The caller must
// close the values. Read fails with [ErrAborted] if a parameter server is lost; return this error, because
// the coordinator handles it.
func (c *Closure) Read(names ...string) ([]*Value, error) {
	return readVariables(c, names, cdist.Dist_closure_read)
}

// ReadRows reads rows of a variable, for example of an embedding: row k of the result is row indices[k]. The
// indices are of type int32 or int64. Rows are not cached.
func (c *Closure) ReadRows(name string, indices *Value) (*Value, error) {
	return readRows(c, name, indices, cdist.Dist_closure_read_rows)
}

// Assign changes a variable after the closure has succeeded. libdist retains the value until then, and its
// elements must not change meanwhile.
func (c *Closure) Assign(name string, how Assign, value *Value) error {
	return changeVariable(c, name, int(how), value, cdist.Dist_closure_assign)
}

// Scatter changes rows of a variable by indexed slices, row by row, after the closure has succeeded. libdist
// retains slices until then, like the value of [Closure.Assign].
func (c *Closure) Scatter(name string, how Scatter, slices *Value) error {
	return changeVariable(c, name, int(how), slices, cdist.Dist_closure_scatter)
}

// Update changes variables, after the closure has succeeded, with a function that the parameter servers have
// registered; see [Server.RegisterUpdate]. The variables must have the same parts on the same servers.
// arguments may be nil; otherwise libdist retains it like the value of [Closure.Assign]. If the function
// fails, the closure fails with its error.
func (c *Closure) Update(function string, names []string, arguments *Value) error {
	return updateVariables(c, function, names, arguments, cdist.Dist_closure_update)
}

// PerWorker returns the value that [Coordinator.CreatePerWorker] created on this worker. If its function
// returned a value made by [Strategy.NewObject], [Value.Object] returns the object. The caller must close the
// value.
func (c *Closure) PerWorker(name string) (*Value, error) {
	if err := checkText(name); err != nil {
		return nil, err
	}
	var out int64
	err := c.with(func(native int64) error { return cdist.Dist_closure_per_worker(native, name, &out) })
	return adopt(out, err)
}

// serversUser is a closure or a coordinator: an object through which variables of parameter servers are
// accessed.
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
