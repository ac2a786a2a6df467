// SPDX-License-Identifier: Apache-2.0

package dist_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"libdist.example/dist"
)

// collected collects garbage until something has come of it.
func collected(t *testing.T, what string, so func() bool) {
	t.Helper()
	for begun := time.Now(); !so(); time.Sleep(time.Millisecond) {
		if time.Since(begun) > time.Minute {
			t.Fatal(what)
		}
		runtime.GC()
	}
}

func TestRPCForgottenObjectsEnd(t *testing.T) {
	r := newRPC(t, nil)
	before := dist.LastToken()
	func() {
		forgotten := must[*dist.RPCServer](t)(dist.NewRPCServer("127.0.0.1:0", nil))
		noError(t, forgotten.Register("wait", r.wait))
		noError(t, forgotten.Register("wait too", r.wait))
		fails(t, forgotten.Register("wait", r.wait), dist.ErrAlreadyExists, "wait")
		fails(t, forgotten.Register("dist.wait", r.wait), dist.ErrInvalidArgument, "dist.")
		is(t, "offered", dist.TokensSince(before), 2)
	}()
	collected(t, "the methods of a server are left", func() bool { return dist.TokensSince(before) == 0 })
	func() {
		client := must[*dist.RPCClient](t)(dist.NewRPCClient(r.server.Address(), nil))
		must[*dist.RemoteValue](t)(client.Begin(background, "wait"))
		await(t, "inside", &r.inside, 1)
	}()
	collected(t, "a call that nobody has is under way", func() bool { return r.ended.Load() == 1 })

	// A client is there while its remote values are, and a server while it serves.
	remote := func() *dist.RemoteValue {
		client := must[*dist.RPCClient](t)(dist.NewRPCClient(r.server.Address(), nil))
		return must[*dist.RemoteValue](t)(client.Begin(background, "wait"))
	}()
	await(t, "inside", &r.inside, 2)
	address := func() string {
		server := must[*dist.RPCServer](t)(dist.NewRPCServer("127.0.0.1:0", nil))
		noError(t, server.Register("stop", func(context.Context, []*dist.Value) (*dist.Value, error) {
			go server.Close()
			return nil, nil
		}))
		noError(t, server.Start())
		return server.Address()
	}()
	for range 5 {
		runtime.GC()
		time.Sleep(time.Millisecond)
	}
	client := must[*dist.RPCClient](t)(dist.NewRPCClient(address, nil))
	defer client.Close()
	v := must[*dist.Value](t)(client.Call(background, "stop"))
	v.Close()
	is(t, "ready", remote.Ready(), false)
	close(r.open)
	v = must[*dist.Value](t)(remote.Get(background))
	v.Close()
	noError(t, remote.Close())
	collected(t, "a method is left", func() bool { return dist.TokensSince(before) == 0 })
}

func TestRPCMisuse(t *testing.T) {
	r := newRPC(t, nil)
	for _, address := range []string{"", "host", "host:65536", "a\x00b:1"} {
		_, err := dist.NewRPCServer(address, nil)
		fails(t, err, dist.ErrInvalidArgument, "")
		_, err = dist.NewRPCClient(address, nil)
		fails(t, err, dist.ErrInvalidArgument, "")
	}
	_, err := dist.NewRPCServer("127.0.0.1:0", &dist.RPCServerOptions{NumThreads: -1})
	fails(t, err, dist.ErrInvalidArgument, "NumThreads is -1")
	_, err = dist.NewRPCServer("127.0.0.1:0", &dist.RPCServerOptions{MaxQueued: -1})
	fails(t, err, dist.ErrInvalidArgument, "MaxQueued is -1")
	fails(t, r.server.Register("late", r.wait), dist.ErrFailedPrecondition, "started")
	fails(t, r.server.Start(), dist.ErrFailedPrecondition, "already been started")
	one := r.number(t, 1)
	object := must[*dist.Value](t)(r.values.NewObject(t))
	defer object.Close()
	gone := must[*dist.Value](t)(r.values.NewText("gone"))
	gone.Close()
	for words, arguments := range map[string][]*dist.Value{
		"cannot be sent": {one, object}, "items[1] of a tuple is nil": {one, nil},
	} {
		_, err = r.client.Call(background, "echo", arguments...)
		fails(t, err, dist.ErrInvalidArgument, words)
		_, err = r.client.Begin(background, "echo", arguments...)
		fails(t, err, dist.ErrInvalidArgument, words)
	}
	_, err = r.client.Call(background, "echo", gone)
	fails(t, err, dist.ErrFailedPrecondition, "value is closed")
	for _, name := range []string{"", "a\x00b"} {
		_, err = r.client.Call(background, name)
		fails(t, err, dist.ErrInvalidArgument, "")
	}
	fresh := must[*dist.RPCServer](t)(dist.NewRPCServer("127.0.0.1:0", nil))
	fails(t, fresh.Register("nil", nil), dist.ErrInvalidArgument, "fn is nil")
	noError(t, fresh.Close())
	noError(t, fresh.Close())
	fails(t, fresh.Register("late", r.wait), dist.ErrFailedPrecondition, "the server is closed")
	fails(t, fresh.Start(), dist.ErrFailedPrecondition, "the server is closed")
	is(t, "address", all(fresh.Address(), (*dist.RPCServer)(nil).Address()), all("", ""))

	remote := must[*dist.RemoteValue](t)(r.client.Begin(background, "first", one))
	v := must[*dist.Value](t)(remote.Get(background))
	noError(t, r.client.Close())
	noError(t, r.client.Close())
	_, err = r.client.Call(background, "first", one)
	fails(t, err, dist.ErrFailedPrecondition, "the client is closed")
	_, err = r.client.Begin(background, "first", one)
	fails(t, err, dist.ErrFailedPrecondition, "the client is closed")
	_, err = r.client.Methods(background)
	fails(t, err, dist.ErrFailedPrecondition, "the client is closed")
	again := must[*dist.Value](t)(remote.Get(background))
	is(t, "same", v.Same(again), true)
	noError(t, remote.Cancel()) // it has ended
	noError(t, remote.Close())
	noError(t, remote.Close())
	_, err = remote.Get(background)
	fails(t, err, dist.ErrFailedPrecondition, "the remote value is closed")
	fails(t, remote.Cancel(), dist.ErrFailedPrecondition, "the remote value is closed")
	is(t, "ready", remote.Ready(), false)
	is(t, "value", v.String(), "f32[1] [1]")
	v.Close()
	again.Close()

	var noServer *dist.RPCServer
	var noClient *dist.RPCClient
	var noRemote *dist.RemoteValue
	fails(t, noServer.Start(), dist.ErrInvalidArgument, "server is nil")
	_, err = noClient.Call(background, "x")
	fails(t, err, dist.ErrInvalidArgument, "client is nil")
	_, err = noRemote.Get(background)
	fails(t, err, dist.ErrInvalidArgument, "remote is nil")
	is(t, "closing nil", all(noServer.Close(), noClient.Close(), noRemote.Close()), all(nil, nil, nil))
}
