// SPDX-License-Identifier: Apache-2.0

package dist

import (
	"context"
	"sync"
	"time"

	"libdist.example/dist/internal/cdist"
)

// RPCMethod is a function that other processes call by name (TensorFlow: tf.distribute.experimental.rpc).
// arguments are closed when the call returns; call [Value.Retain] to keep one. libdist takes ownership of the
// result; nil means no result. If the function returns an error or panics, the client receives the code and
// the text. ctx ends when no client waits for the result any more, and at the latest at the deadline of the
// call. It polls libdist every few milliseconds; its Err method checks immediately. Use [CurrentStrategy] to
// create values.
type RPCMethod = func(ctx context.Context, arguments []*Value) (*Value, error)

// An RPCServer offers methods to other processes over gRPC. Addresses other than loopback require TLS, or a
// secret and DIST_PLAINTEXT=1. The server reads these settings from the environment: DIST_JOB_SECRET,
// DIST_TLS_CA, DIST_TLS_CERTIFICATE, DIST_TLS_KEY, DIST_PLAINTEXT, DIST_LEASE_SECONDS and DIST_MODULE_FOLDER.
// Clients need the same secret and the same lease. A message has at most 256 MiB.
type RPCServer struct{ object }

// started keeps running servers alive.
var started sync.Map

// NewRPCServer returns a server for an address, "host:port" or "[v6]:port"; with port 0, the system chooses a
// port. If the host is a name other than localhost, the server listens on all interfaces. The server does not
// listen before [RPCServer.Start]. options may be nil. The caller must close the server; a started server runs
// until Close, even if the program no longer refers to it.
func NewRPCServer(address string, options *RPCServerOptions) (*RPCServer, error) {
	if options == nil {
		options = &RPCServerOptions{}
	}
	var u uses
	defer u.end()
	address, native := u.text(address), options.native(&u)
	defer cdist.DeleteDist_rpc_server_options(native)
	native.Count_memory()
	if u.err != nil {
		return nil, u.err
	}
	var out int64
	if err := cdist.Dist_rpc_server_create(nil, address, native, &out); err != nil {
		return nil, fromNative(err)
	}
	s := &RPCServer{}
	s.given = u.keep()
	s.open(out, func(native int64) { _ = cdist.Dist_rpc_server_destroy(native) }, nil)
	return s, nil
}

func (u *uses) rpcServer(s *RPCServer) int64 {
	if s == nil {
		return 0
	}
	return u.take(&s.object, "server")
}

// rpcMethod is the object behind the token of a method.
type rpcMethod struct{ fn RPCMethod }

// Register offers a method under a name of up to 255 bytes, which must not begin with "dist.". Call it before
// Start. The method is called on several threads at the same time.
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

// answer calls a function of the program for another process. It returns a handle, or the negative of the
// status for libdist. The arguments are closed when it returns.
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

// positional returns the arguments that a value holds. A value that is not a list or tuple is the only one.
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

// Start creates the threads that run methods, and listens.
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

// Address returns the address for clients, with the port that the system has chosen; "" for a nil or closed
// server.
func (s *RPCServer) Address() string {
	var u uses
	defer u.end()
	return cdist.Dist_rpc_server_address(u.rpcServer(s))
}

// Close stops the server and waits until running methods have returned. New calls are rejected, calls that
// wait for a thread fail with [ErrUnavailable], and the contexts of running methods end. Inside one of the
// server's methods, Close fails with [ErrFailedPrecondition], and the server continues. Closing a nil or
// closed server does nothing.
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

// askEvery is how often libdist is polled for whether a method's result is still needed, while a goroutine
// waits for the end of the context.
const askEvery = 5 * time.Millisecond

// methodContext ends when the result of a method or closure is no longer needed.
type methodContext struct {
	context.Context // over as far as is known
	cause           context.CancelCauseFunc
	over            error              // the cause if no client waits
	stop            context.CancelFunc // of the deadline
	watched         sync.Once
	mu              sync.Mutex
	cancel          int64 // belongs to libdist; 0 = the call has ended
}

func newMethodContext(cancel int64, timeout time.Duration, over error) *methodContext {
	c := &methodContext{cancel: cancel, over: over, stop: func() {}}
	c.Context, c.cause = context.WithCancelCause(context.Background())
	if timeout > 0 {
		c.Context, c.stop = context.WithTimeout(c.Context, timeout)
	}
	return c
}

// end is called when the method has returned.
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

// Err returns why the context has ended, or nil if it has not.
func (c *methodContext) Err() error {
	c.ask()
	return c.Context.Err()
}

// Done returns a channel that is closed when the context has ended.
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
