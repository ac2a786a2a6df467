// SPDX-License-Identifier: Apache-2.0

package dist

import (
	"context"
	"sync"
	"time"

	"libdist.example/dist/internal/cdist"
)

// RPCClientOptions are the rare choices of NewRPCClient.
type RPCClientOptions struct {
	Timeout time.Duration // of calls whose context has no deadline; 0: 600 s; NoTimeout: none
}

// RPCClient calls the methods of an RPCServer, of any process and language.
//
//	sum, err := client.Call(ctx, "add", a, b)
//
// Values that come back are the caller's, to be closed; nothing is a value of kind NoneValue. An error has the code and the
// text that the method gave. Any number of goroutines may call at the same time.
type RPCClient struct {
	object
	waiting callers // for their results
}

// NewRPCClient makes a client of the server at an address, which need not be there yet: calls wait for it, up to their
// deadline. Nothing is sent before the first call. options may be nil.
func NewRPCClient(address string, options *RPCClientOptions) (*RPCClient, error) {
	if err := checkText(address); err != nil {
		return nil, err
	}
	native := cdist.NewDist_rpc_client_options()
	defer cdist.DeleteDist_rpc_client_options(native)
	native.Count_memory()
	if options != nil {
		native.SetTimeout_ns(int64(options.Timeout))
	}
	var out int64
	if err := cdist.Dist_rpc_client_create(nil, address, native, &out); err != nil {
		return nil, fromNative(err)
	}
	c := &RPCClient{}
	c.open(out, cdist.Dist_rpc_client_destroy, nil)
	return c, nil
}

func (u *uses) rpcClient(c *RPCClient) int64 {
	if c == nil {
		return 0
	}
	return u.take(&c.object, "client")
}

// Close ends the client. Calls that have no answer are ErrCancelled; remote values stay readable. Closing twice, and nil,
// are fine.
func (c *RPCClient) Close() error {
	if c == nil {
		return nil
	}
	c.waiting.end("the client is closed")
	c.close()
	return nil
}

// rpcOptions are libdist's for a call, to be deleted.
func (c *timedCall) rpcOptions() cdist.Dist_rpc_call_options {
	native := cdist.NewDist_rpc_call_options()
	native.SetTimeout_ns(c.timeout(0))
	native.SetCancel(c.cancel.handle())
	return native
}

// wait does a call that waits for its result.
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

// with calls something with the name and the arguments of a call.
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

// Call calls a method with positional arguments, which stay the caller's, and waits for its result. The end of ctx ends the
// call, and tells the method; a deadline is the call's time-out.
func (c *RPCClient) Call(ctx context.Context, method string, arguments ...*Value) (*Value, error) {
	var out int64
	err := c.with(method, arguments, func(tuple int64) error {
		return c.wait(ctx, func(client int64, options cdist.Dist_rpc_call_options) error {
			return cdist.Dist_rpc_call(client, method, tuple, options, &out)
		})
	})
	return adopt(out, err)
}

// Methods are the names of the server's methods, sorted.
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

// Begin is Call without waiting: what the call comes to is in the remote value, errors of the server's too. ctx is the
// call's until that is closed.
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

// RemoteValue is what a call of an RPCClient's, or a closure of a Coordinator's, comes to, later. Close gives up a call that
// is under way; a closure goes on.
type RemoteValue struct {
	object
	call    *timedCall // nil: it is a closure's
	asking  sync.Mutex
	arrived chan struct{} // closed when the call has ended; nil: nobody has waited with a context
}

// newRemoteValue keeps its client, whose end would be that of the call.
func newRemoteValue(native int64, call *timedCall, client *RPCClient) *RemoteValue {
	r := &RemoteValue{call: call}
	r.open(native, func(native int64) {
		cdist.Dist_remote_value_cancel(native) // a goroutine may wait for it
		cdist.Dist_remote_value_release(native)
		call.cancel.end()
	}, client)
	return r
}

// newClosureResult keeps its coordinator, whose end would be that of the closure.
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

// Get waits for what the call comes to, its value or its error; the end of ctx ends the wait, and the call goes on. Any
// goroutine may ask, and again: each gets a value of its own to close.
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
			return nil, endedBefore(ctx, "the context ended the wait; the call goes on")
		}
	}
	var out int64
	err := cdist.Dist_remote_value_get(native, -1, &out)
	if err != nil && r != nil && r.call != nil {
		err = r.call.own(err)
	}
	return adopt(out, err)
}

// arrival is closed when the call has ended.
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

// Ready says whether Get would not wait; false for nil and for a closed one.
func (r *RemoteValue) Ready() bool {
	var u uses
	defer u.end()
	native := u.remoteValue(r)
	return u.err == nil && cdist.Dist_remote_value_ready(native) != 0
}

// Cancel ends the call with ErrCancelled, unless it has ended, and tells the method. A closure is taken back where no
// worker has it; one that runs has its effects, and ErrCancelled is what Get says of it.
func (r *RemoteValue) Cancel() error {
	var u uses
	defer u.end()
	native := u.remoteValue(r)
	if u.err == nil {
		cdist.Dist_remote_value_cancel(native)
	}
	return u.err
}

// Close gives the remote value up, and with it a call that is under way: who waits for that gets ErrCancelled. A closure
// goes on. Closing twice, and nil, are fine.
func (r *RemoteValue) Close() error {
	if r != nil {
		if r.call != nil {
			_ = r.Cancel() // refused where it is closed
		}
		r.close()
	}
	return nil
}
