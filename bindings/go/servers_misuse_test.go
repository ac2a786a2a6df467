// SPDX-License-Identifier: Apache-2.0

package dist_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"libdist.example/dist"
)

func TestErrorsOfClosuresComeOutOnce(t *testing.T) {
	c := newCluster(t, 1, 1, nil)
	c.create(t, "v", 0)
	row := must[*dist.Value](t)(c.values.NewText("7"))
	defer row.Close()
	for name, want := range map[string]struct {
		code      dist.Code
		arguments *dist.Value
		words     string
	}{
		"fails":   {dist.ErrNotFound, row, "no row 7"},
		"ends":    {dist.ErrOutOfRange, nil, "EOF"},
		"panics":  {dist.ErrUnknown, c.number(t, 1), "panic: boom"},
		"nowhere": {dist.ErrNotFound, nil, "has no closure nowhere"},
		"count":   {dist.ErrNotFound, nil, `no per-worker value "counter"`},
		"close":   {dist.ErrFailedPrecondition, nil, "Server.Close: this goroutine is in one of the server's closures"},
		// A result that cannot be sent.
		"new counter": {dist.ErrInvalidArgument, nil, "cannot be sent"},
	} {
		remote := c.schedule(t, name, want.arguments)
		for range 2 {
			_, err := remote.Get(background)
			fails(t, err, want.code, want.words)
		}
		err := c.coordinator.Join(background)
		fails(t, err, want.code, want.words)
		fails(t, err, want.code, "("+name+") on worker 0")
		noError(t, c.coordinator.Join(background))
		_, err = remote.Get(background)
		fails(t, err, want.code, want.words)
		noError(t, remote.Close())
	}
	for range 2 {
		noError(t, c.schedule(t, "ends", nil).Close()) // the closure goes on
		for done := false; !done; {
			var err error
			if done, err = c.coordinator.Done(); err != nil {
				fails(t, err, dist.ErrOutOfRange, "EOF")
				break
			}
		}
		is(t, "done", all(c.coordinator.Done()), all(true, nil))
	}
	// What has failed has changed nothing.
	is(t, "v", c.read(t, "v"), "f32 0")
	is(t, "result", fetch(t, c.schedule(t, "add and double", c.number(t, 3))), "f32 6")
	is(t, "v", c.read(t, "v"), "f32 3")
}

func TestContextsOfClosuresAndWaits(t *testing.T) {
	c := newCluster(t, 1, 1, &dist.CoordinatorOptions{MaxQueued: 2})
	c.create(t, "v", 0)
	running := c.schedule(t, "wait", nil)
	await(t, "inside", &c.inside, 1)
	queued := c.schedule(t, "which", nil)

	// The end of a context ends the wait, and nothing else.
	enough := errors.New("enough")
	ended, end := context.WithCancelCause(background)
	end(enough)
	soon := func() context.Context { return within(t, 20*time.Millisecond) }
	for name, wait := range map[string]func(ctx context.Context) error{
		"schedule": func(ctx context.Context) error {
			_, err := c.coordinator.Schedule(ctx, "which", nil)
			return err
		},
		"join":   c.coordinator.Join,
		"server": c.servers[0].Join,
		"get": func(ctx context.Context) error {
			_, err := queued.Get(ctx)
			return err
		},
	} {
		for range 3 {
			ctx, cancel := context.WithCancelCause(background)
			result := make(chan error)
			go func() { result <- wait(ctx) }()
			time.Sleep(time.Millisecond) // either before the wait or in it
			cancel(enough)
			err := <-result
			fails(t, err, dist.ErrCancelled, "")
			is(t, name, all(errors.Is(err, enough), errors.Is(err, context.Canceled)), all(true, true))
		}
		fails(t, wait(ended), dist.ErrCancelled, "enough")
		err := wait(soon())
		fails(t, err, dist.ErrDeadlineExceeded, "")
		is(t, name, errors.Is(err, context.DeadlineExceeded), true)
	}
	hasty := must[*dist.Coordinator](t)(c.strategy.NewCoordinator(&dist.CoordinatorOptions{MaxQueued: -1})) // it is there already
	fails(t, hasty.Join(soon()), dist.ErrDeadlineExceeded, "waiting for closures")
	noError(t, hasty.Close())

	// One that waits can be taken back; one that runs goes on.
	noError(t, queued.Cancel())
	_, err := queued.Get(background)
	fails(t, err, dist.ErrCancelled, "")
	is(t, "ready", running.Ready(), false)
	close(c.open)
	is(t, "running", fetch(t, running), "None")
	noError(t, c.coordinator.Join(within(t, time.Minute)))
	is(t, "ended", c.ended.Load(), int32(0))
}

func TestAnErrorEndsOtherClosures(t *testing.T) {
	c := newCluster(t, 1, 2, nil)
	c.create(t, "v", 0)
	running := c.schedule(t, "wait", nil)
	await(t, "inside", &c.inside, 1)
	bad := c.schedule(t, "ends", nil)
	_, err := bad.Get(background)
	fails(t, err, dist.ErrOutOfRange, "EOF")
	await(t, "ended", &c.ended, 1)
	fails(t, c.coordinator.Join(background), dist.ErrOutOfRange, "EOF")
	_, err = running.Get(background)
	fails(t, err, dist.ErrCancelled, "another closure has failed")
	is(t, "after", fetch(t, c.schedule(t, "add and double", c.number(t, 1))), "f32 2")
}

func TestTheEndOfACoordinatorAndOfServers(t *testing.T) {
	c := newCluster(t, 1, 2, &dist.CoordinatorOptions{MaxQueued: 3})
	c.create(t, "v", 0)
	remotes := []*dist.RemoteValue{c.schedule(t, "wait", nil), c.schedule(t, "wait", nil), c.schedule(t, "which", nil)}
	await(t, "inside", &c.inside, 2)
	waits := make(chan error)
	for _, wait := range []func() error{
		func() error { return c.coordinator.Join(background) },
		func() error {
			_, err := c.coordinator.Schedule(background, "which", nil)
			return err
		},
		func() error {
			_, err := remotes[2].Get(background)
			return err
		},
	} {
		go func() { waits <- wait() }()
	}
	second := must[*dist.Coordinator](t)(c.strategy.NewCoordinator(nil))
	noError(t, second.Close()) // the first one goes on
	fails(t, c.strategy.Close(), dist.ErrFailedPrecondition, "coordinator")
	noError(t, c.coordinator.Close())
	noError(t, c.coordinator.Close())
	for range 3 {
		if err := <-waits; !errors.Is(err, dist.ErrCancelled) { // where it came too late to wait
			fails(t, err, dist.ErrFailedPrecondition, "the coordinator is closed")
		}
	}
	_, err := remotes[0].Get(background)
	fails(t, err, dist.ErrCancelled, "the coordinator has ended")
	await(t, "ended", &c.ended, 2)
	fails(t, c.coordinator.Join(background), dist.ErrFailedPrecondition, "the coordinator is closed")

	// Another one takes the strategy; servers that have ended do not come back to it.
	third := must[*dist.Coordinator](t)(c.strategy.NewCoordinator(&dist.CoordinatorOptions{Timeout: 50 * time.Millisecond}))
	fails(t, third.CreateVariable("v", dist.Scalar(float32(1)), nil), dist.ErrDeadlineExceeded, "/job:ps/task:0 is not connected")
	noError(t, third.Close())

	// A server's end lets go of who waits for it.
	lone := c.newServer(t)
	for range 4 {
		go func() { waits <- lone.Join(background) }()
	}
	noError(t, lone.Stop())
	noError(t, lone.Close())
	noError(t, lone.Close())
	for range 4 {
		if err := <-waits; err != nil {
			fails(t, err, dist.ErrFailedPrecondition, "the server is closed")
		}
	}
	noError(t, c.strategy.Close())
}

func TestForgottenClosuresAndServersEnd(t *testing.T) {
	before := dist.LastToken()
	func() {
		forgotten := must[*dist.Server](t)(dist.NewLocalServer(nil))
		noError(t, forgotten.Register("x", func(*dist.Closure, *dist.Value) (*dist.Value, error) { return nil, nil }))
		noError(t, forgotten.RegisterUpdate("x", momentum))
		is(t, "offered", dist.TokensSince(before), 2)
	}()
	collected(t, "the functions of a server are left", func() bool { return dist.TokensSince(before) == 0 })

	c := newCluster(t, 1, 2, nil)
	c.create(t, "v", 0)
	offered := dist.LastToken()
	noError(t, c.coordinator.CreatePerWorker("counter", "new counter", nil))
	for range 300 { // remote values, arguments and closures are forgotten, and the collector comes
		v := must[*dist.Value](t)(dist.NewScalar(c.values, float32(1)))
		c.schedule(t, "add and double", v)
		c.schedule(t, "count", nil)
		runtime.GC()
	}
	noError(t, c.coordinator.Join(background))
	is(t, "v", c.read(t, "v"), "f32 300")

	is(t, "objects", dist.TokensSince(offered) >= 1, true)
	noError(t, c.coordinator.Close())
	for _, server := range c.servers {
		noError(t, server.Close())
	}
	collected(t, "objects are left", func() bool { return dist.TokensSince(before) == 0 })

	// A coordinator is there while its remote values are; then its servers end.
	ps, worker := c.newServer(t), c.newServer(t)
	offered = dist.LastToken()
	remote := func() *dist.RemoteValue {
		strategy := must[*dist.Strategy](t)(newServersStrategy(t, []string{ps.Target()[7:]}, []string{worker.Target()[7:]}))
		coordinator := must[*dist.Coordinator](t)(strategy.NewCoordinator(&dist.CoordinatorOptions{
			Partitioner: func(spec dist.RawTensor) ([]int, error) { return dist.FixedShards(spec.Shape, 0, 1) },
		}))
		noError(t, coordinator.CreateVariable("v", dist.Of([]float32{1}), nil))
		return must[*dist.RemoteValue](t)(coordinator.Schedule(background, "wait", nil))
	}()
	await(t, "inside", &c.inside, 1)
	for range 5 {
		runtime.GC()
		time.Sleep(time.Millisecond)
	}
	is(t, "goes on", all(remote.Ready(), dist.TokensSince(offered)), all(false, 1))
	close(c.open)
	is(t, "remote", fetch(t, remote), "None")
	collected(t, "the server goes on", func() bool { return ps.Join(within(t, time.Millisecond)) == nil })
	noError(t, worker.Join(background))
	collected(t, "the partitioner is left", func() bool { return dist.TokensSince(offered) == 0 })
}

func TestServersMisuse(t *testing.T) {
	c := newCluster(t, 1, 1, nil)
	c.create(t, "v", 0)
	one := c.number(t, 1)
	fetch(t, c.schedule(t, "keep", nil))
	kept := c.kept.Load()
	is(t, "name", all(kept.Name(), kept.ID(), kept.Worker()), all("keep", int64(0), 0))
	is(t, "context", kept.Context().Err(), context.Canceled)
	of := func(_ any, err error) error { return err }
	for name, err := range map[string]error{
		"read": of(kept.Read("v")), "rows": of(kept.ReadRows("v", one)), "assign": kept.Assign("v", dist.AssignSet, one),
		"scatter": kept.Scatter("v", dist.ScatterAdd, one), "update": kept.Update("momentum", []string{"v"}, nil),
		"per worker": of(kept.PerWorker("counter")),
	} {
		fails(t, err, dist.ErrFailedPrecondition, "the closure is over")
		_ = name
	}
	var no *dist.Closure
	fails(t, of(no.Read("v")), dist.ErrInvalidArgument, "closure is nil")
	is(t, "nil", all(no.Name(), no.ID(), no.Worker(), no.Context().Err()), all("", int64(-1), -1, nil))

	gone := must[*dist.Value](t)(c.values.NewText("gone"))
	gone.Close()
	object := must[*dist.Value](t)(c.values.NewObject(t))
	defer object.Close()
	const bad = "v\x00x"
	for words, errs := range map[string][]error{
		"value is closed": {of(c.coordinator.Schedule(background, "itself", gone)), c.coordinator.Assign("v", dist.AssignSet, gone),
			of(c.coordinator.ReadRows("v", gone)), c.coordinator.CreatePerWorker("x", "itself", gone),
			c.coordinator.Update("momentum", []string{"v"}, gone), c.coordinator.Scatter("v", dist.ScatterAdd, gone)},
		"a text has a NUL inside": {of(c.coordinator.Schedule(background, bad, nil)), c.coordinator.Assign(bad, dist.AssignSet, one),
			of(c.coordinator.Read("v", bad)), of(c.coordinator.ReadRows(bad, one)), c.coordinator.Save(bad),
			of(c.coordinator.Restore(bad)), c.coordinator.CreatePerWorker("x", bad, nil), of(c.coordinator.VariableSpec(bad)),
			of(c.coordinator.VariableParts(bad)), c.coordinator.CreateVariable(bad, dist.Scalar(float32(1)), nil),
			c.coordinator.CreateVariable("x", dist.Scalar(float32(1)), &dist.PSVariableOptions{ColocateWith: bad}),
			c.coordinator.Update("x", []string{bad}, nil), c.servers[0].Register(bad, nil), of(no.PerWorker(bad)),
			of(dist.NewServer(nil, bad, 0, nil)), of(dist.NewLocalServer(&dist.ServerOptions{BindAddress: bad}))},
		"cannot be sent":       {of(c.coordinator.Schedule(background, "itself", object))},
		"value is nil":         {c.coordinator.Assign("v", dist.AssignSet, nil)},
		"no variable":          {of(c.coordinator.Read("x")), of(c.coordinator.VariableParts("x")), of(c.coordinator.VariableSpec("x"))},
		"already":              {c.coordinator.CreateVariable("v", dist.Scalar(float32(1)), nil)},
		"MaxStaleness is -1":   {c.coordinator.CreateVariable("x", dist.Scalar(float32(1)), &dist.PSVariableOptions{MaxStaleness: -1})},
		"started":              {c.servers[0].Register("late", momentumOnly), c.servers[0].RegisterUpdate("late", momentum), c.servers[0].Start()},
		"NumThreads is -1":     {of(dist.NewLocalServer(&dist.ServerOptions{NumThreads: -1}))},
		"MaxMessageBytes is -": {of(dist.NewLocalServer(&dist.ServerOptions{MaxMessageBytes: -1}))},
		"strategy is nil":      {of((*dist.Strategy)(nil).NewCoordinator(nil))},
		"dist.ParameterServer": {of(c.values.NewCoordinator(nil))},
		"coordinator is nil":   {(*dist.Coordinator)(nil).Join(background), of((*dist.Coordinator)(nil).Done()), of((*dist.Coordinator)(nil).Stats())},
		"server is nil":        {(*dist.Server)(nil).Start(), (*dist.Server)(nil).Join(background)},
	} {
		for _, err := range errs {
			if err == nil {
				t.Errorf("nothing is refused where %q is expected", words)
				continue
			}
			fails(t, err, codeOf(err), words)
		}
	}
	fresh := must[*dist.Server](t)(dist.NewLocalServer(nil))
	fails(t, fresh.Register("nil", nil), dist.ErrInvalidArgument, "fn is nil")
	fails(t, fresh.RegisterUpdate("nil", nil), dist.ErrInvalidArgument, "fn is nil")
	fails(t, fresh.Join(background), dist.ErrFailedPrecondition, "has not been started")
	noError(t, fresh.Close())
	fails(t, fresh.Start(), dist.ErrFailedPrecondition, "the server is closed")
	is(t, "target", all(fresh.Target(), (*dist.Server)(nil).Target()), all("", ""))
	is(t, "closing nil", all((*dist.Server)(nil).Close(), (*dist.Coordinator)(nil).Close()), all(nil, nil))
	is(t, "variables", (*dist.Coordinator)(nil).Variables(), []string{})
	strategy := serversStrategy(t, []string{"127.0.0.1:1"}, []string{"127.0.0.1:2"})
	fails(t, of(strategy.NewCoordinator(&dist.CoordinatorOptions{MaxQueued: -1})), dist.ErrInvalidArgument, "MaxQueued is -1")
	fails(t, of(strategy.NewCoordinator(&dist.CoordinatorOptions{ClosuresPerWorker: -1})), dist.ErrInvalidArgument,
		"ClosuresPerWorker is -1")
	spec := must[*dist.ClusterSpec](t)(dist.NewClusterSpec(map[string][]string{"ps": {"127.0.0.1:0"}}))
	defer spec.Close()
	fails(t, of(dist.NewServer(spec, "worker", 0, nil)), dist.ErrInvalidArgument, "worker")
	fails(t, of(dist.NewServer(spec, "ps", 1<<40, nil)), dist.ErrInvalidArgument, "32 bits")
	named := must[*dist.Server](t)(dist.NewServer(spec, "ps", 0, &dist.ServerOptions{StartTimeout: time.Millisecond}))
	noError(t, named.Start())
	fails(t, named.Join(background), dist.ErrDeadlineExceeded, "no coordinator connected")
	noError(t, named.Close())
}

func momentumOnly(*dist.Closure, *dist.Value) (*dist.Value, error) { return nil, nil }

func codeOf(err error) dist.Code {
	var report *dist.Error
	errors.As(err, &report)
	return report.Code
}

func TestACoordinatorIsToBeClosedFirst(t *testing.T) {
	c := newCluster(t, 1, 1, nil)
	fails(t, c.strategy.Close(), dist.ErrFailedPrecondition, "the strategy still has a coordinator; close it first")
}
