// SPDX-License-Identifier: Apache-2.0

package dist_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"libdist.example/dist"
)

// rpc is a server and a client of it.
type rpc struct {
	server *dist.RPCServer
	client *dist.RPCClient
	values *dist.Strategy // that makes arguments
	inside atomic.Int32   // calls of "wait"
	ended  atomic.Int32   // those whose context was over
	open   chan struct{}  // lets them go
}

// newRPC makes a server with some methods, and a client; both are closed with the test.
func newRPC(t *testing.T, options *dist.RPCServerOptions) *rpc {
	t.Helper()
	r := &rpc{values: newStrategy(t, dist.Options{Replicas: 1}), open: make(chan struct{})}
	r.server = must[*dist.RPCServer](t)(dist.NewRPCServer("127.0.0.1:0", options))
	r.offer(t, r.server)
	if err := r.server.Start(); err != nil {
		r.server.Close()
		if errors.Is(err, dist.ErrUnavailable) && strings.Contains(err.Error(), "is not installed") {
			t.Skip(err)
		}
		t.Fatal(err)
	}
	r.client = must[*dist.RPCClient](t)(dist.NewRPCClient(r.server.Address(), nil))
	t.Cleanup(func() {
		noError(t, r.client.Close())
		noError(t, r.server.Close())
	})
	return r
}

func (r *rpc) offer(t *testing.T, server *dist.RPCServer) {
	t.Helper()
	for name, method := range map[string]dist.RPCMethod{
		"echo": func(_ context.Context, arguments []*dist.Value) (*dist.Value, error) {
			return dist.CurrentStrategy().NewList(arguments...)
		},
		"first": func(_ context.Context, arguments []*dist.Value) (*dist.Value, error) { return arguments[0], nil },
		"add": func(_ context.Context, arguments []*dist.Value) (*dist.Value, error) {
			a, err := dist.Read[float32](arguments[0])
			if err != nil {
				return nil, err
			}
			b, err := dist.Read[float32](arguments[1])
			for i := range b.Data {
				a.Data[i] += b.Data[i]
			}
			return all2(dist.NewValue(dist.CurrentStrategy(), a.Data, a.Shape...))(err)
		},
		"nothing": func(context.Context, []*dist.Value) (*dist.Value, error) { return nil, nil },
		"fails": func(_ context.Context, arguments []*dist.Value) (*dist.Value, error) {
			return nil, dist.Errorf(dist.ErrNotFound, "no row %s", arguments[0].Text())
		},
		"ends":   func(context.Context, []*dist.Value) (*dist.Value, error) { return nil, io.EOF },
		"panics": func(context.Context, []*dist.Value) (*dist.Value, error) { panic("boom") },
		"wait":   r.wait,
		"polls": func(ctx context.Context, _ []*dist.Value) (*dist.Value, error) {
			r.inside.Add(1)
			for ctx.Err() == nil {
				time.Sleep(time.Millisecond)
			}
			r.ended.Add(1)
			return nil, ctx.Err()
		},
		"deadline": func(ctx context.Context, _ []*dist.Value) (*dist.Value, error) {
			_, dated := ctx.Deadline()
			return dist.CurrentStrategy().NewText(fmt.Sprint(dated))
		},
		"close": func(context.Context, []*dist.Value) (*dist.Value, error) { return nil, server.Close() },
	} {
		noError(t, server.Register(name, method))
	}
}

// all2 is a value with the first error that there is.
func all2(v *dist.Value, err error) func(error) (*dist.Value, error) {
	return func(before error) (*dist.Value, error) { return v, errors.Join(before, err) }
}

func (r *rpc) wait(ctx context.Context, _ []*dist.Value) (*dist.Value, error) {
	r.inside.Add(1)
	select {
	case <-r.open:
		return nil, nil
	case <-ctx.Done():
		r.ended.Add(1)
		return nil, context.Cause(ctx)
	}
}

func (r *rpc) number(t *testing.T, numbers ...float32) *dist.Value {
	t.Helper()
	v := must[*dist.Value](t)(dist.NewValue(r.values, numbers))
	t.Cleanup(func() { v.Close() })
	return v
}

func (r *rpc) text(t *testing.T, text string) *dist.Value {
	t.Helper()
	v := must[*dist.Value](t)(r.values.NewText(text))
	t.Cleanup(func() { v.Close() })
	return v
}

// await waits until a counter has come to a number.
func await(t *testing.T, what string, counter *atomic.Int32, wanted int32) {
	t.Helper()
	for begun := time.Now(); counter.Load() < wanted; time.Sleep(time.Millisecond) {
		if time.Since(begun) > time.Minute {
			t.Fatalf("%s: %d, want %d", what, counter.Load(), wanted)
		}
	}
}

func TestRPCCalls(t *testing.T) {
	r := newRPC(t, nil)
	sum := must[*dist.Value](t)(r.client.Call(background, "add", r.number(t, 1, 2), r.number(t, 10, 20)))
	is(t, "sum", sum.String(), "f32[2] [11, 22]")
	noError(t, sum.Close())

	one := r.number(t, 1)
	list := must[*dist.Value](t)(r.values.NewList(one, r.text(t, "ä €")))
	dict := must[*dist.Value](t)(r.values.NewDict(map[string]*dist.Value{"b": list, "a": one}))
	none := must[*dist.Value](t)(r.values.NewNone())
	for _, arguments := range [][]*dist.Value{{}, {one}, {list}, {dict, none, r.text(t, ""), list}} {
		want := must[*dist.Value](t)(r.values.NewList(arguments...))
		back := must[*dist.Value](t)(r.client.Call(background, "echo", arguments...))
		is(t, "echo", back.String(), want.String())
		back.Close()
		want.Close()
	}
	first := must[*dist.Value](t)(r.client.Call(background, "first", dict))
	is(t, "first", first.String(), dict.String())
	for _, v := range []*dist.Value{list, dict, none, first} {
		v.Close()
	}
	nothing := must[*dist.Value](t)(r.client.Call(background, "nothing"))
	is(t, "nothing", nothing.Kind(), dist.NoneValue)
	is(t, "names", all(r.client.Methods(background)), all([]string{"add", "close", "deadline", "echo", "ends", "fails",
		"first", "nothing", "panics", "polls", "wait"}, nil))
	dated, cancel := context.WithTimeout(background, time.Hour)
	defer cancel()
	for text, ctx := range map[string]context.Context{`"true"`: dated, `"false"`: background} {
		client := must[*dist.RPCClient](t)(dist.NewRPCClient(r.server.Address(), &dist.RPCClientOptions{Timeout: dist.NoTimeout}))
		v := must[*dist.Value](t)(client.Call(ctx, "deadline"))
		is(t, "with a deadline", v.String(), text)
		noError(t, client.Close())
		v.Close()
	}
}

func TestRPCErrorsHaveTheirWords(t *testing.T) {
	r := newRPC(t, nil)
	for method, want := range map[string]struct {
		code  dist.Code
		words string
	}{
		"fails":   {dist.ErrNotFound, "no row 7"},
		"ends":    {dist.ErrOutOfRange, "EOF"},
		"panics":  {dist.ErrUnknown, "panic: boom"},
		"first":   {dist.ErrUnknown, "index out of range"},
		"nowhere": {dist.ErrNotFound, "the server has no method nowhere"},
		"close":   {dist.ErrFailedPrecondition, "RPCServer.Close: this goroutine is in one of the server's methods"},
	} {
		arguments := []*dist.Value{r.text(t, "7")}
		if method == "first" {
			arguments = nil
		}
		_, err := r.client.Call(background, method, arguments...)
		fails(t, err, want.code, want.words)
		remote := must[*dist.RemoteValue](t)(r.client.Begin(background, method, arguments...))
		for range 2 {
			_, err = remote.Get(background)
			fails(t, err, want.code, want.words)
		}
		is(t, "ready", remote.Ready(), true)
		noError(t, remote.Close())
	}
	v := must[*dist.Value](t)(r.client.Call(background, "first", r.number(t, 1))) // all goes on
	v.Close()
}

func TestRPCContextEndsCall(t *testing.T) {
	r := newRPC(t, nil)
	enough := errors.New("enough")
	for i, method := range []string{"wait", "polls"} {
		ctx, cancel := context.WithCancelCause(background)
		go func() {
			await(t, "inside", &r.inside, int32(2*i+1))
			cancel(enough)
		}()
		_, err := r.client.Call(ctx, method)
		fails(t, err, dist.ErrCancelled, "enough")
		is(t, "causes", []bool{errors.Is(err, enough), errors.Is(err, context.Canceled)}, []bool{true, true})
		await(t, "ended", &r.ended, int32(2*i+1))
		_, err = r.client.Call(ctx, method)
		fails(t, err, dist.ErrCancelled, "before the call began")

		ctx, cancel = context.WithCancelCause(background)
		remote := must[*dist.RemoteValue](t)(r.client.Begin(ctx, method))
		is(t, "ready", remote.Ready(), false)
		await(t, "inside", &r.inside, int32(2*i+2))
		cancel(enough)
		_, err = remote.Get(background)
		fails(t, err, dist.ErrCancelled, "enough")
		is(t, "cause", errors.Is(err, enough), true)
		noError(t, remote.Close())
		await(t, "ended", &r.ended, int32(2*i+2))
	}
}

func TestRPCDeadlines(t *testing.T) {
	r := newRPC(t, nil)
	ctx, cancel := context.WithTimeout(background, 20*time.Millisecond)
	defer cancel()
	_, err := r.client.Call(ctx, "wait")
	fails(t, err, dist.ErrDeadlineExceeded, "")
	is(t, "context's", errors.Is(err, context.DeadlineExceeded), true)
	_, err = r.client.Begin(ctx, "wait")
	fails(t, err, dist.ErrDeadlineExceeded, "before the call began")

	hasty := must[*dist.RPCClient](t)(dist.NewRPCClient(r.server.Address(), &dist.RPCClientOptions{Timeout: time.Millisecond}))
	defer hasty.Close()
	_, err = hasty.Call(background, "wait")
	fails(t, err, dist.ErrDeadlineExceeded, "")
	is(t, "context's", errors.Is(err, context.DeadlineExceeded), false)
	remote := must[*dist.RemoteValue](t)(hasty.Begin(background, "wait"))
	_, err = remote.Get(background)
	fails(t, err, dist.ErrDeadlineExceeded, "") // the call's, or what the method says of its own
	noError(t, remote.Close())

	// The end of the wait is not that of the call.
	remote = must[*dist.RemoteValue](t)(r.client.Begin(background, "wait"))
	for range 2 {
		ctx, cancel := context.WithTimeout(background, 5*time.Millisecond)
		_, err = remote.Get(ctx)
		cancel()
		fails(t, err, dist.ErrDeadlineExceeded, "The call continues to run")
	}
	is(t, "ready", remote.Ready(), false)
	close(r.open)
	ctx, cancel = context.WithCancel(background)
	defer cancel()
	v := must[*dist.Value](t)(remote.Get(ctx))
	v.Close()
	cancel() // what is there needs no wait
	v = must[*dist.Value](t)(remote.Get(ctx))
	v.Close()
	noError(t, remote.Close())

	// Nobody is there.
	nobody := must[*dist.RPCServer](t)(dist.NewRPCServer("127.0.0.1:0", nil))
	noError(t, nobody.Start())
	late := must[*dist.RPCClient](t)(dist.NewRPCClient(nobody.Address(), nil))
	defer late.Close()
	noError(t, nobody.Close())
	ctx, cancel = context.WithTimeout(background, 300*time.Millisecond)
	defer cancel()
	_, err = late.Call(ctx, "echo")
	fails(t, err, dist.ErrDeadlineExceeded, "cannot be reached")
}

func TestRPCManyCallsAtATime(t *testing.T) {
	r := newRPC(t, nil)
	const calls = 1000
	remotes := make([]*dist.RemoteValue, calls)
	for i := range remotes {
		v := must[*dist.Value](t)(dist.NewScalar(r.values, int64(i)))
		remotes[i] = must[*dist.RemoteValue](t)(r.client.Begin(background, "first", v))
		v.Close()
	}
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	for i := range remotes {
		remote := remotes[calls-1-i]
		v := must[*dist.Value](t)(remote.Get(ctx))
		is(t, "number", all(dist.ReadScalar[int64](v)), all(int64(calls-1-i), nil))
		v.Close()
		remote.Close()
	}
	var wrong atomic.Int32
	var goroutines sync.WaitGroup
	for g := range 8 {
		goroutines.Add(1)
		go func() {
			defer goroutines.Done()
			for i := range 100 {
				v, err := dist.NewScalar(r.values, int64(100*g+i))
				if err != nil {
					wrong.Add(1)
					return
				}
				back, err := r.client.Call(ctx, "first", v)
				v.Close()
				if n, _ := dist.ReadScalar[int64](back); err != nil || n != int64(100*g+i) {
					wrong.Add(1)
				}
				back.Close()
			}
		}()
	}
	goroutines.Wait()
	is(t, "wrong", wrong.Load(), int32(0))
}

func TestRPCServerEndsItsCalls(t *testing.T) {
	r := newRPC(t, &dist.RPCServerOptions{NumThreads: 1})
	running := must[*dist.RemoteValue](t)(r.client.Begin(background, "wait"))
	defer running.Close()
	await(t, "inside", &r.inside, 1)
	queued := must[*dist.RemoteValue](t)(r.client.Begin(background, "wait"))
	defer queued.Close()
	ctx, cancel := context.WithTimeout(background, 50*time.Millisecond)
	defer cancel()
	_, err := r.client.Call(ctx, "echo") // behind it
	fails(t, err, dist.ErrDeadlineExceeded, "")
	address := r.server.Address()
	noError(t, r.server.Close())
	_, err = running.Get(background)
	fails(t, err, dist.ErrCancelled, "nobody waits")
	_, err = queued.Get(background)
	fails(t, err, dist.ErrUnavailable, "")
	is(t, "ended", r.ended.Load(), int32(1))

	// The same client finds another server at the address.
	again := must[*dist.RPCServer](t)(dist.NewRPCServer(address, nil))
	r.offer(t, again)
	noError(t, again.Start())
	v := must[*dist.Value](t)(r.client.Call(background, "first", r.number(t, 1)))
	v.Close()
	noError(t, again.Close())
}

func TestRPCClientEndsItsCalls(t *testing.T) {
	r := newRPC(t, nil)
	remote := must[*dist.RemoteValue](t)(r.client.Begin(background, "wait"))
	waits, called := make(chan error), make(chan error)
	go func() {
		_, err := remote.Get(background)
		waits <- err
	}()
	go func() {
		_, err := r.client.Call(background, "wait")
		called <- err
	}()
	await(t, "inside", &r.inside, 2)
	noError(t, r.client.Close())
	fails(t, <-called, dist.ErrCancelled, "the client is closed")
	fails(t, <-waits, dist.ErrCancelled, "the client has been closed")
	await(t, "ended", &r.ended, 2)
	noError(t, remote.Close())
}

func TestRPCRemoteValueEndsItsCall(t *testing.T) {
	r := newRPC(t, nil)
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	for i, end := range []func(*dist.RemoteValue) error{(*dist.RemoteValue).Cancel, (*dist.RemoteValue).Close} {
		remote := must[*dist.RemoteValue](t)(r.client.Begin(ctx, "wait"))
		waits := make(chan error)
		go func() {
			_, err := remote.Get(ctx)
			waits <- err
		}()
		await(t, "inside", &r.inside, int32(i+1))
		noError(t, end(remote))
		if err := <-waits; !errors.Is(err, dist.ErrCancelled) && !errors.Is(err, dist.ErrFailedPrecondition) {
			t.Error(err)
		}
		await(t, "ended", &r.ended, int32(i+1))
		noError(t, remote.Close())
	}
}
