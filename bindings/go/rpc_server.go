// SPDX-License-Identifier: Apache-2.0

package dist

import (
	"context"
	"sync"
	"time"

	"libdist.example/dist/internal/cdist"
)

// RPCMethod is a function that other processes call by a name (TensorFlow: tf.distribute.experimental.rpc). Its arguments
// end with the call: Retain what is kept. The result is taken over; nil is nothing. An error goes to the client with its
// code and its text, and so does a panic. ctx is over when nobody waits for the result any more, at its deadline at the
// latest; in between libdist is asked every few milliseconds, and at once by ctx.Err. Values are made with GetStrategy.
type RPCMethod = func(ctx context.Context, arguments []*Value) (*Value, error)

// RPCServerOptions are the rare choices of NewRPCServer.
type RPCServerOptions struct {
	NumThreads int // on which methods run; 0: 4
	MaxQueued  int // calls that wait for one of them; beyond it a call is ErrResourceExhausted; 0: 1,024
}

// RPCServer offers methods to other processes, over gRPC. See libdist's headers, rpc.h, for what it reads of the
// environment, for what goes over, and for the limits.
type RPCServer struct{ object }

// started are servers that serve: the collector leaves them alone.
var started sync.Map

// NewRPCServer makes a server of an address, "host:port" or "[v6]:port"; with port 0 the system chooses one. It listens
// from Start on. options may be nil. One that was started goes on until Close, also where the program forgets it.
func NewRPCServer(address string, options *RPCServerOptions) (*RPCServer, error) {
	var u uses
	address = u.text(address)
	native := cdist.NewDist_rpc_server_options()
	defer cdist.DeleteDist_rpc_server_options(native)
	native.Count_memory()
	if options != nil {
		native.SetNum_threads(u.int32("RPCServerOptions.NumThreads", options.NumThreads))
		native.SetMax_queued(u.int32("RPCServerOptions.MaxQueued", options.MaxQueued))
	}
	if u.err != nil {
		return nil, u.err
	}
	var out int64
	if err := cdist.Dist_rpc_server_create(nil, address, native, &out); err != nil {
		return nil, fromNative(err)
	}
	s := &RPCServer{}
	s.open(out, func(native int64) { _ = cdist.Dist_rpc_server_destroy(native) }, nil)
	return s, nil
}

func (u *uses) rpcServer(s *RPCServer) int64 {
	if s == nil {
		return 0
	}
	return u.take(&s.object, "server")
}

// rpcMethod is what a method's token stands for.
type rpcMethod struct{ fn RPCMethod }

// Register offers a method under a name of up to 255 bytes that does not begin with "dist.", before Start. It is called on
// several threads at a time.
func (s *RPCServer) Register(method string, fn RPCMethod) error {
	var u uses
	defer u.end()
	native := u.rpcServer(s)
	u.text(method)
	if u.err != nil {
		return u.err
	}
	token := registerIf(fn != nil, &rpcMethod{fn}) // until libdist releases it
	err := cdist.Dist_rpc_server_register(native, method, token)
	if err != nil {
		forget(token)
	}
	return fromNative(err)
}

// Method is called by libdist for a client.
func (callbacks) Method(token int64, _ string, cancel, timeoutNanos, arguments int64) int64 {
	m := registered[*rpcMethod](token)
	return answer(arguments, func(given *Value) (*Value, error) {
		ctx := newMethodContext(cancel, time.Duration(timeoutNanos), errNobodyWaits)
		defer ctx.end()
		return m.fn(ctx, given.positional())
	})
}

// answer is what a function of the program's gives to another process: a handle, or the negative of the status that libdist
// passes on. Its arguments end with it.
func answer(arguments int64, fn func(given *Value) (*Value, error)) int64 {
	var native int64
	err := onNative(-1, func() error {
		given := lend(arguments)
		defer given.Close()
		result, err := fn(given)
		if err != nil {
			result.Close()
			return err
		}
		native, err = result.handOver()
		return err
	})
	if err != nil {
		return -int64(tell(err))
	}
	return native
}

// positional are the arguments that a value is; a value that is no list or tuple is the only one.
func (v *Value) positional() []*Value {
	switch v.Kind() {
	case 0, NoneValue:
		return nil
	case ListValue, TupleValue:
		items := make([]*Value, v.Len())
		for i := range items {
			items[i] = v.Item(i)
		}
		return items
	}
	return []*Value{v}
}

// Start listens, and makes the threads that methods run on.
func (s *RPCServer) Start() error {
	var u uses
	defer u.end()
	native := u.rpcServer(s)
	if u.err != nil {
		return u.err
	}
	err := cdist.Dist_rpc_server_start(native)
	if err == nil {
		started.Store(s, nil)
	}
	return fromNative(err)
}

// Address is where clients find the server, with the port that the system has chosen; "" for nil and for a closed one.
func (s *RPCServer) Address() string {
	var u uses
	defer u.end()
	return cdist.Dist_rpc_server_address(u.rpcServer(s))
}

// Close ends the server. What comes is refused, calls that wait for a thread are ErrUnavailable, and the contexts of methods
// that run are over; it waits until those have returned. Inside one of the server's methods it fails with
// ErrFailedPrecondition, and the server goes on. Closing twice, and nil, are fine.
func (s *RPCServer) Close() error {
	if s == nil {
		return nil
	}
	ended, err := s.endBy(cdist.Dist_rpc_server_destroy)
	if ended {
		started.Delete(s)
	}
	return err
}

// askEvery is how often libdist is asked whether a method's result is still waited for, where a goroutine waits for the
// context's end.
const askEvery = 5 * time.Millisecond

// methodContext is over when nobody waits for a method's result, or a closure's, any more.
type methodContext struct {
	context.Context // over as far as is known
	cause           context.CancelCauseFunc
	over            error              // the cause where nobody waits
	stop            context.CancelFunc // of the deadline
	watched         sync.Once
	mu              sync.Mutex
	cancel          int64 // libdist's; 0: the call is over, and with it that object
}

func newMethodContext(cancel int64, timeout time.Duration, over error) *methodContext {
	c := &methodContext{cancel: cancel, over: over, stop: func() {}}
	c.Context, c.cause = context.WithCancelCause(context.Background())
	if timeout > 0 {
		c.Context, c.stop = context.WithTimeout(c.Context, timeout)
	}
	return c
}

// end is where the method has returned.
func (c *methodContext) end() {
	c.mu.Lock()
	c.cancel = 0
	c.mu.Unlock()
	c.cause(nil)
	c.stop()
}

var errNobodyWaits = newError(ErrCancelled, "nobody waits for the method's result any more")

func (c *methodContext) ask() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cancel != 0 && cdist.Dist_cancel_signalled(c.cancel) != 0 {
		c.cause(c.over)
	}
}

// Err is why the context is over; nil: it is not.
func (c *methodContext) Err() error {
	c.ask()
	return c.Context.Err()
}

// Done is closed when the context is over.
func (c *methodContext) Done() <-chan struct{} {
	c.watched.Do(func() { go c.watch() })
	return c.Context.Done()
}

func (c *methodContext) watch() {
	ticks := time.NewTicker(askEvery)
	defer ticks.Stop()
	for {
		select {
		case <-c.Context.Done():
			return
		case <-ticks.C:
			c.ask()
		}
	}
}
