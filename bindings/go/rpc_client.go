// SPDX-License-Identifier: Apache-2.0

package dist

import (
	"context"
	"sync"

	"libdist.example/dist/internal/cdist"
)

// An RPCClient calls the methods of one [RPCServer], which may run in another process and be written in
// another language.
//
//	sum, err := client.Call(ctx, "add", a, b)
//
// The caller must close the values that calls return. If a method returns no result, the value is of kind
// [NoneValue]. Errors have the code and the text that the method returned. Several goroutines may use a
// client at the same time.
type RPCClient struct {
	object
	waiting callers // for their results
}

// NewRPCClient returns a client of the server at an address. The server need not exist yet: nothing is sent
// before the first call, and calls wait for the server up to their deadline. options may be nil. The caller
// must close the client.
func NewRPCClient(address string, options *RPCClientOptions) (*RPCClient, error) {
	if options == nil {
		options = &RPCClientOptions{}
	}
	var u uses
	defer u.end()
	address, native := u.text(address), options.native(&u)
	defer cdist.DeleteDist_rpc_client_options(native)
	native.Count_memory()
	if u.err != nil {
		return nil, u.err
	}
	var out int64
	if err := cdist.Dist_rpc_client_create(nil, address, native, &out); err != nil {
		return nil, fromNative(err)
	}
	c := &RPCClient{}
	c.given = u.keep()
	c.open(out, cdist.Dist_rpc_client_destroy, nil)
	return c, nil
}

func (u *uses) rpcClient(c *RPCClient) int64 {
	if c == nil {
		return 0
	}
	return u.take(&c.object, "client")
}

// Close closes the client. Calls without an answer fail with [ErrCancelled]; remote values stay readable.
// Closing a nil or closed client does nothing.
func (c *RPCClient) Close() error {
	if c == nil {
		return nil
	}
	c.waiting.end("the client is closed")
	c.close()
	return nil
}

// rpcOptions returns libdist's options of a call, which the caller must delete.
func (c *timedCall) rpcOptions() cdist.Dist_rpc_call_options {
	native := cdist.NewDist_rpc_call_options()
	native.SetTimeout_ns(c.timeout(0))
	native.SetCancel(c.cancel.handle())
	return native
}

// wait makes a call that waits for its result.
func (c *RPCClient) wait(ctx context.Context, do func(client int64, options cdist.Dist_rpc_call_options) error) error {
	var u uses
	defer u.end()
	client := u.rpcClient(c)
	if u.err != nil {
		return u.err
	}
	var waiting *callers
	if c != nil {
		waiting = &c.waiting
	}
	return waiting.wait(ctx, func(call *timedCall) error {
		options := call.rpcOptions()
		defer cdist.DeleteDist_rpc_call_options(options)
		return do(client, options)
	})
}

// with calls a function with the name and the arguments of a call.
func (c *RPCClient) with(method string, arguments []*Value, call func(arguments int64) error) error {
	var u uses
	defer u.end()
	u.text(method)
	handles := u.values(arguments)
	if u.err != nil {
		return u.err
	}
	var tuple int64
	if err := cdist.Rpc_arguments(handles, int64(len(handles)), &tuple); err != nil {
		return fromNative(err)
	}
	defer cdist.Dist_value_release(tuple)
	return call(tuple)
}

// Call calls a method with positional arguments and waits for its result. The caller keeps the arguments and
// must close the result. The end of ctx cancels the call and notifies the method. If ctx has a deadline, it
// is also the timeout of the call.
func (c *RPCClient) Call(ctx context.Context, method string, arguments ...*Value) (*Value, error) {
	var out int64
	err := c.with(method, arguments, func(tuple int64) error {
		return c.wait(ctx, func(client int64, options cdist.Dist_rpc_call_options) error {
			return cdist.Dist_rpc_call(client, method, tuple, options, &out)
		})
	})
	return adopt(out, err)
}

// Methods returns the names of the server's methods, sorted.
func (c *RPCClient) Methods(ctx context.Context) ([]string, error) {
	var out int64
	err := c.wait(ctx, func(client int64, options cdist.Dist_rpc_call_options) error {
		return cdist.Dist_rpc_client_methods(client, options, &out)
	})
	names, err := adopt(out, err)
	if err != nil {
		return nil, err
	}
	defer names.Close()
	all := make([]string, 0, names.Len())
	for _, name := range names.Items() {
		all = append(all, name.Text())
	}
	return all, nil
}

// Begin starts a call like [RPCClient.Call] without waiting. The remote value receives the result later,
// including errors of the server. ctx applies to the call until the remote value is closed.
func (c *RPCClient) Begin(ctx context.Context, method string, arguments ...*Value) (*RemoteValue, error) {
	var u uses
	defer u.end()
	client := u.rpcClient(c)
	if u.err != nil {
		return nil, u.err
	}
	var remote *RemoteValue
	err := c.with(method, arguments, func(tuple int64) error {
		call, err := newTimedCall(ctx)
		if err != nil {
			return err
		}
		options := call.rpcOptions()
		defer cdist.DeleteDist_rpc_call_options(options)
		var out int64
		if err := cdist.Dist_rpc_begin(client, method, tuple, options, &out); err != nil {
			call.cancel.end()
			return call.own(err)
		}
		remote = newRemoteValue(out, call, c)
		return nil
	})
	return remote, err
}

// A RemoteValue is the future result of a call of an [RPCClient] or of a closure of a [Coordinator]. Closing
// it cancels a call in progress, but not a closure.
type RemoteValue struct {
	object
	call    *timedCall // nil: it is a closure's
	asking  sync.Mutex
	arrived chan struct{} // closed when the call has completed; nil = no wait with a context yet
}

// newRemoteValue keeps its client alive, because closing the client would end the call.
func newRemoteValue(native int64, call *timedCall, client *RPCClient) *RemoteValue {
	r := &RemoteValue{call: call}
	r.open(native, func(native int64) {
		cdist.Dist_remote_value_cancel(native) // a goroutine may wait for it
		cdist.Dist_remote_value_release(native)
		call.cancel.end()
	}, client)
	return r
}

// newClosureResult keeps its coordinator alive, because closing it would end the closure.
func newClosureResult(native int64, coordinator *Coordinator) *RemoteValue {
	r := &RemoteValue{}
	r.open(native, cdist.Dist_remote_value_release, coordinator)
	return r
}

func (u *uses) remoteValue(r *RemoteValue) int64 {
	if r == nil {
		return 0
	}
	return u.take(&r.object, "remote value")
}

// Get waits until the call has completed and returns its value or its error. The end of ctx ends the wait;
// the call continues. Several goroutines may call Get, repeatedly: each call returns a value of its own,
// which the caller must close.
func (r *RemoteValue) Get(ctx context.Context) (*Value, error) {
	var u uses
	defer u.end()
	native := u.remoteValue(r)
	if u.err != nil {
		return nil, u.err
	}
	ctx = contextOr(ctx)
	if r != nil && ctx.Done() != nil && cdist.Dist_remote_value_ready(native) == 0 {
		select {
		case <-r.arrival(native):
		case <-ctx.Done():
			return nil, endedBefore(ctx, "the context ended the wait. The call continues to run.")
		}
	}
	var out int64
	err := cdist.Dist_remote_value_get(native, -1, &out)
	if err != nil && r != nil && r.call != nil {
		err = r.call.own(err)
	}
	return adopt(out, err)
}

// arrival returns a channel that is closed when the call has completed.
func (r *RemoteValue) arrival(native int64) <-chan struct{} {
	r.asking.Lock()
	defer r.asking.Unlock()
	if r.arrived == nil {
		arrived, held := make(chan struct{}), cdist.Dist_remote_value_retain(native)
		r.arrived = arrived
		go func() { // it knows nothing of r, which the collector may find
			defer close(arrived)
			var out int64
			_ = cdist.Dist_remote_value_get(held, -1, &out)
			cdist.Dist_value_release(out)
			cdist.Dist_remote_value_release(held)
		}()
	}
	return r.arrived
}

// Ready reports whether Get would return without waiting; false for a nil or closed remote value.
func (r *RemoteValue) Ready() bool {
	var u uses
	defer u.end()
	native := u.remoteValue(r)
	return u.err == nil && cdist.Dist_remote_value_ready(native) != 0
}

// Cancel cancels the call, unless it has completed, and notifies the method; Get then fails with
// [ErrCancelled]. A closure is cancelled if no worker has it yet. A running closure continues and has its
// effects, but Get fails with ErrCancelled.
func (r *RemoteValue) Cancel() error {
	var u uses
	defer u.end()
	native := u.remoteValue(r)
	if u.err == nil {
		cdist.Dist_remote_value_cancel(native)
	}
	return u.err
}

// Close releases the remote value. It cancels a call in progress: goroutines that wait for it get
// [ErrCancelled]. A closure continues. Closing a nil or closed remote value does nothing.
func (r *RemoteValue) Close() error {
	if r != nil {
		if r.call != nil {
			_ = r.Cancel() // fails if the value is closed
		}
		r.close()
	}
	return nil
}
