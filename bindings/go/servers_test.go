// SPDX-License-Identifier: Apache-2.0

package dist_test

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"libdist.example/dist"
)

// cluster is a job of this process, over loopback: parameter servers, workers, and a coordinator.
type cluster struct {
	servers     []*dist.Server // parameter servers, then workers
	numPS       int
	strategy    *dist.Strategy
	coordinator *dist.Coordinator
	values      *dist.Strategy // that makes arguments
	inside      atomic.Int32   // closures that wait
	ended       atomic.Int32   // those whose context was over
	open        chan struct{}  // lets them go
	kept        atomic.Pointer[dist.Closure]
}

// newCluster makes a cluster that is closed with the test.
func newCluster(t *testing.T, numPS, numWorkers int, options *dist.CoordinatorOptions) *cluster {
	t.Helper()
	c := &cluster{numPS: numPS, values: newStrategy(t, dist.Options{Replicas: 1}), open: make(chan struct{})}
	var addresses []string
	for range numPS + numWorkers {
		server := c.newServer(t)
		c.servers = append(c.servers, server)
		addresses = append(addresses, strings.TrimPrefix(server.Target(), "grpc://"))
	}
	c.strategy = serversStrategy(t, addresses[:numPS], addresses[numPS:])
	c.coordinator = must[*dist.Coordinator](t)(c.strategy.NewCoordinator(options))
	t.Cleanup(func() { noError(t, c.coordinator.Close()) }) // before the strategy and the servers
	return c
}

func (c *cluster) newServer(t *testing.T) *dist.Server {
	t.Helper()
	server := must[*dist.Server](t)(dist.NewLocalServer(nil))
	c.register(t, server)
	if err := server.Start(); err != nil {
		server.Close()
		if errors.Is(err, dist.ErrUnavailable) && strings.Contains(err.Error(), "is not installed") {
			t.Skip(err)
		}
		t.Fatal(err)
	}
	t.Cleanup(func() { noError(t, server.Close()) })
	return server
}

func serversStrategy(t *testing.T, ps, workers []string) *dist.Strategy {
	t.Helper()
	strategy := must[*dist.Strategy](t)(newServersStrategy(t, ps, workers))
	t.Cleanup(func() { noError(t, strategy.Close()) })
	return strategy
}

func newServersStrategy(t *testing.T, ps, workers []string) (*dist.Strategy, error) {
	t.Helper()
	spec := must[*dist.ClusterSpec](t)(dist.NewClusterSpec(map[string][]string{"ps": ps, "worker": workers}))
	defer spec.Close()
	resolver := must[*dist.ClusterResolver](t)(dist.NewSimpleResolver(spec, nil))
	defer resolver.Close()
	return dist.New(dist.Options{Kind: dist.ParameterServer, ClusterResolver: resolver})
}

// counter is an object of this program's, of which each worker has one.
type counter struct{ next atomic.Int64 }

func (c *cluster) register(t *testing.T, server *dist.Server) {
	t.Helper()
	for name, fn := range map[string]dist.ClosureFunc{
		"add and double": func(closure *dist.Closure, arguments *dist.Value) (*dist.Value, error) {
			if err := closure.Assign("v", dist.AssignAdd, arguments); err != nil {
				return nil, err
			}
			x, err := dist.ReadScalar[float32](arguments)
			return all2(dist.NewScalar(dist.CurrentStrategy(), 2*x))(err)
		},
		"itself": func(_ *dist.Closure, arguments *dist.Value) (*dist.Value, error) { return arguments, nil },
		"which": func(closure *dist.Closure, arguments *dist.Value) (*dist.Value, error) {
			if closure.Name() != "which" || arguments.Kind() != dist.NoneValue {
				return nil, errors.New(closure.Name() + " " + arguments.String())
			}
			return dist.NewValue(dist.CurrentStrategy(), []int64{int64(closure.Worker()), closure.ID()})
		},
		"fails": func(closure *dist.Closure, arguments *dist.Value) (*dist.Value, error) {
			one, err := dist.NewScalar[float32](dist.CurrentStrategy(), 1)
			if err == nil {
				err = closure.Assign("v", dist.AssignAdd, one)
			}
			return one, errors.Join(err, dist.Errorf(dist.ErrNotFound, "no row %s", arguments.Text()))
		},
		"ends": func(*dist.Closure, *dist.Value) (*dist.Value, error) { return nil, io.EOF },
		"panics": func(closure *dist.Closure, arguments *dist.Value) (*dist.Value, error) {
			if err := closure.Assign("v", dist.AssignAdd, arguments); err != nil {
				return nil, err
			}
			panic("boom")
		},
		"new counter": func(*dist.Closure, *dist.Value) (*dist.Value, error) {
			return dist.CurrentStrategy().NewObject(&counter{})
		},
		"count": func(closure *dist.Closure, _ *dist.Value) (*dist.Value, error) {
			own, err := closure.PerWorker("counter")
			if err != nil {
				return nil, err
			}
			defer own.Close()
			return dist.NewScalar(dist.CurrentStrategy(), own.Object().(*counter).next.Add(1))
		},
		"wait": func(closure *dist.Closure, _ *dist.Value) (*dist.Value, error) {
			c.inside.Add(1)
			select {
			case <-c.open:
				return nil, nil
			case <-closure.Context().Done():
				c.ended.Add(1)
				return nil, context.Cause(closure.Context())
			}
		},
		"read": func(closure *dist.Closure, arguments *dist.Value) (*dist.Value, error) {
			values, err := closure.Read(arguments.Text(), "v")
			if err != nil {
				return nil, err
			}
			defer values[1].Close()
			return values[0], nil
		},
		"double rows": func(closure *dist.Closure, indices *dist.Value) (*dist.Value, error) {
			rows, err := closure.ReadRows("table", indices)
			if err != nil {
				return nil, err
			}
			slices, err := dist.CurrentStrategy().NewComposite(dist.IndexedSlicesValue, rows, indices, nothing())
			if err != nil {
				return nil, err
			}
			defer slices.Close()
			return rows, closure.Scatter("table", dist.ScatterAdd, slices)
		},
		"step": func(closure *dist.Closure, gradient *dist.Value) (*dist.Value, error) {
			return nil, closure.Update("momentum", []string{"w", "m"}, gradient)
		},
		"close": func(*dist.Closure, *dist.Value) (*dist.Value, error) { return nil, server.Close() },
		"keep": func(closure *dist.Closure, _ *dist.Value) (*dist.Value, error) {
			c.kept.Store(closure)
			return nil, nil
		},
	} {
		noError(t, server.Register(name, fn))
	}
	noError(t, server.RegisterUpdate("momentum", momentum))
	noError(t, server.RegisterUpdate("close", func([]dist.RawTensor, *dist.Value) error { return server.Close() }))
	noError(t, server.RegisterUpdate("half done", func(variables []dist.RawTensor, _ *dist.Value) error {
		clear(variables[0].Data)
		return dist.Errorf(dist.ErrDataLoss, "half done")
	}))
	noError(t, server.RegisterUpdate("panics", func(variables []dist.RawTensor, _ *dist.Value) error {
		clear(variables[0].Data)
		panic("boom")
	}))
}

func nothing() *dist.Value {
	none, _ := dist.CurrentStrategy().NewNone()
	return none
}

// momentum does w -= m = m/2 + gradient.
func momentum(variables []dist.RawTensor, gradient *dist.Value) error {
	w, err := dist.As[float32](variables[0])
	if err != nil {
		return err
	}
	m, err := dist.As[float32](variables[1])
	if err != nil {
		return err
	}
	return dist.View(gradient, func(g dist.Tensor[float32]) error {
		for i := range g.Data {
			m.Data[i] = m.Data[i]/2 + g.Data[i]
			w.Data[i] -= m.Data[i]
		}
		return nil
	})
}

func (c *cluster) number(t *testing.T, x float32) *dist.Value {
	t.Helper()
	v := must[*dist.Value](t)(dist.NewScalar(c.values, x))
	t.Cleanup(func() { v.Close() })
	return v
}

func (c *cluster) create(t *testing.T, name string, x float32) {
	t.Helper()
	noError(t, c.coordinator.CreateVariable(name, dist.Scalar(x), nil))
}

func (c *cluster) schedule(t *testing.T, name string, arguments *dist.Value) *dist.RemoteValue {
	t.Helper()
	return must[*dist.RemoteValue](t)(c.coordinator.Schedule(background, name, arguments))
}

// fetch is what a closure has come to, as text.
func fetch(t *testing.T, remote *dist.RemoteValue) string {
	t.Helper()
	v := must[*dist.Value](t)(remote.Get(background))
	defer v.Close()
	noError(t, remote.Close())
	return v.String()
}

// read is a variable, as text.
func (c *cluster) read(t *testing.T, name string) string {
	t.Helper()
	values := must[[]*dist.Value](t)(c.coordinator.Read(name))
	defer values[0].Close()
	return values[0].String()
}

func TestClosuresChangeVariablesAndGiveValues(t *testing.T) {
	before := dist.LastToken()
	t.Run("job", func(t *testing.T) {
		c := newCluster(t, 2, 2, nil)
		c.create(t, "v", 0)
		var remotes []*dist.RemoteValue
		for i := range 7 {
			remotes = append(remotes, c.schedule(t, "add and double", c.number(t, float32(i+1))))
		}
		noError(t, c.coordinator.Join(background))
		for i, remote := range remotes {
			is(t, "result", fetch(t, remote), must[*dist.Value](t)(dist.NewScalar(c.values, float32(2*i+2))).String())
		}
		is(t, "v", c.read(t, "v"), "f32 28")
		is(t, "itself", fetch(t, c.schedule(t, "itself", c.number(t, 3))), "f32 3")
		which := fetch(t, c.schedule(t, "which", nil))
		is(t, "which", which == "i64[2] [0, 8]" || which == "i64[2] [1, 8]", true)
		name := must[*dist.Value](t)(c.values.NewText("v"))
		is(t, "read", fetch(t, c.schedule(t, "read", name)), "f32 28")
		is(t, "done", all(c.coordinator.Done()), all(true, nil))

		stats := must[dist.CoordinatorStats](t)(c.coordinator.Stats())
		is(t, "bytes", stats.BytesSent > 7*4 && stats.BytesReceived > 7*4, true)
		stats.BytesSent, stats.BytesReceived = 0, 0
		is(t, "stats", stats, dist.CoordinatorStats{NumPS: 2, NumWorkers: 2, WorkersUp: 2, Scheduled: 10, Completed: 10, Mark: 10})
		trace := must[string](t)(c.coordinator.WriteTrace())
		for _, words := range []string{"traceEvents", "add and double", "worker 1"} {
			is(t, words, strings.Contains(trace, words), true)
		}

		is(t, "a server's trace", strings.Contains(must[string](t)(c.servers[0].WriteTrace()), `"libdist ps 0"`), true)

		// The servers end with their coordinator.
		fails(t, c.servers[0].Join(within(t, 100*time.Millisecond)), dist.ErrDeadlineExceeded, "continues to run")
		noError(t, c.coordinator.Close())
		for _, server := range c.servers {
			noError(t, server.Join(background))
		}
	})
	is(t, "functions and objects left", dist.TokensSince(before), 0)
}

// within is a context that ends with the test, or so soon.
func within(t *testing.T, soon time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(background, soon)
	t.Cleanup(cancel)
	return ctx
}

func TestVariablesOnParameterServers(t *testing.T) {
	c := newCluster(t, 2, 1, &dist.CoordinatorOptions{Partitioner: func(spec dist.RawTensor) ([]int, error) {
		if spec.DType != dist.F32 {
			return nil, io.ErrUnexpectedEOF
		}
		if len(spec.Shape) == 3 {
			return []int{1}, nil
		}
		return dist.FixedShards(spec.Shape, 0, 2)
	}})
	c.create(t, "v", 1)
	table := make([]float32, 14)
	for i := range table {
		table[i] = float32(i)
	}
	noError(t, c.coordinator.CreateVariable("table", dist.Of(table, 7, 2), &dist.PSVariableOptions{Partitions: []int{3, 1}}))
	zeros := dist.Of(make([]float32, 3))
	noError(t, c.coordinator.CreateVariable("w", zeros, nil))
	noError(t, c.coordinator.CreateVariable("m", zeros, &dist.PSVariableOptions{ColocateWith: "w"}))
	is(t, "variables", c.coordinator.Variables(), []string{"v", "table", "w", "m"})
	spec := must[dist.RawTensor](t)(c.coordinator.VariableSpec("table"))
	is(t, "spec", all(spec.DType, spec.Shape, spec.Data), all(dist.F32, []int{7, 2}, []byte(nil)))
	device := []string{"/job:ps/replica:0/task:0/device:CPU:0", "/job:ps/replica:0/task:1/device:CPU:0"}
	is(t, "parts", all(c.coordinator.VariableParts("table")),
		all([]dist.VariablePart{{device[1], 0, 3}, {device[0], 3, 2}, {device[1], 5, 2}}, nil))
	is(t, "w", all(c.coordinator.VariableParts("w")), all([]dist.VariablePart{{device[0], 0, 2}, {device[1], 2, 1}}, nil))
	is(t, "m", all(c.coordinator.VariableParts("m")), all(c.coordinator.VariableParts("w")))

	// What the partitioner says, and what it fails with.
	err := c.coordinator.CreateVariable("bad", dist.Of([]int32{1}), nil)
	is(t, "own error", err == io.ErrUnexpectedEOF, true)
	fails(t, c.coordinator.CreateVariable("bad", dist.Of(table, 7, 1, 2), nil), dist.ErrInvalidArgument, "1 numbers")
	fails(t, c.coordinator.CreateVariable("bad", dist.Of(table), &dist.PSVariableOptions{Partitions: []int{0}}),
		dist.ErrInvalidArgument, "partitions are [0]")

	// All of it, some rows of it, and changes of some.
	values := must[[]*dist.Value](t)(c.coordinator.Read("table", "v"))
	whole := values[0]
	defer whole.Close()
	is(t, "table", must[dist.Tensor[float32]](t)(dist.Read[float32](whole)).Data, table)
	is(t, "v", values[1].String(), "f32 1")
	indices := must[*dist.Value](t)(dist.NewValue(c.values, []int32{6, 0, 3, 6}))
	defer indices.Close()
	const before = "f32[4, 2] [[12, 13], [0, 1], [6, 7], [12, 13]]"
	is(t, "rows", fetch(t, c.schedule(t, "double rows", indices)), before)
	rows := must[*dist.Value](t)(c.coordinator.ReadRows("table", indices))
	is(t, "rows", rows.String(), "f32[4, 2] [[36, 39], [0, 2], [12, 14], [36, 39]]")
	slices := must[*dist.Value](t)(c.values.NewComposite(dist.IndexedSlicesValue, rows, indices, nothing()))
	defer slices.Close()
	noError(t, c.coordinator.Scatter("table", dist.ScatterUpdate, slices))
	noError(t, c.coordinator.Assign("table", dist.AssignSub, whole))
	noError(t, c.coordinator.Assign("v", dist.AssignSet, c.number(t, 9)))
	is(t, "v", c.read(t, "v"), "f32 9")
	is(t, "changed", must[*dist.Value](t)(c.coordinator.ReadRows("table", indices)).String(),
		"f32[4, 2] [[24, 26], [0, 1], [6, 7], [24, 26]]")

	// Functions of the parameter servers'.
	gradient := must[*dist.Value](t)(dist.NewValue(c.values, []float32{1, 2, 3}))
	defer gradient.Close()
	fetch(t, c.schedule(t, "step", gradient))
	noError(t, c.coordinator.Update("momentum", []string{"w", "m"}, gradient))
	is(t, "w", c.read(t, "w"), "f32[3] [-2.5, -5, -7.5]")
	fails(t, c.coordinator.Update("half done", []string{"w"}, nil), dist.ErrDataLoss, "half done")
	fails(t, c.coordinator.Update("panics", []string{"w"}, nil), dist.ErrUnknown, "panic: boom")
	fails(t, c.coordinator.Update("close", []string{"w"}, nil), dist.ErrFailedPrecondition,
		"Server.Close: this goroutine is in one of the server's update functions")
	fails(t, c.coordinator.Update("nowhere", []string{"w"}, nil), dist.ErrNotFound, "no update function nowhere")
	fails(t, c.coordinator.Update("momentum", []string{"w", "v"}, gradient), dist.ErrInvalidArgument, "")
	is(t, "w", c.read(t, "w"), "f32[3] [-2.5, -5, -7.5]")
}

func TestEachWorkerHasItsOwn(t *testing.T) {
	c := newCluster(t, 1, 2, nil)
	for stats := must[dist.CoordinatorStats](t)(c.coordinator.Stats()); stats.WorkersUp < 2; time.Sleep(time.Millisecond) {
		stats = must[dist.CoordinatorStats](t)(c.coordinator.Stats())
	}
	before := dist.LastToken()
	noError(t, c.coordinator.CreatePerWorker("counter", "new counter", nil))
	is(t, "objects", dist.TokensSince(before), 2)
	fails(t, c.coordinator.CreatePerWorker("counter", "new counter", nil), dist.ErrAlreadyExists, `"counter"`)
	fails(t, c.coordinator.CreatePerWorker("other", "fails", nil), dist.ErrNotFound, "")
	fails(t, c.coordinator.CreatePerWorker("third", "panics", c.number(t, 1)), dist.ErrNotFound, "")
	c.create(t, "v", 0)
	fails(t, c.coordinator.CreatePerWorker("fourth", "panics", c.number(t, 1)), dist.ErrFailedPrecondition, "per-worker")
	for _, want := range []string{"i64 1", "i64 2"} { // workers take turns
		first, second := c.schedule(t, "count", nil), c.schedule(t, "count", nil)
		is(t, "counts", all(fetch(t, first), fetch(t, second)), all(want, want))
	}
}

func TestCheckpointOfServersGoesOnFromItsMark(t *testing.T) {
	path := filepath.Join(t.TempDir(), "job.safetensors")
	for round := range 2 {
		c := newCluster(t, 2-round, 1, nil) // the second time on other servers
		c.create(t, "other", 1)
		c.create(t, "v", 0)
		if round == 1 {
			is(t, "mark", all(c.coordinator.Restore(path)), all(int64(3), nil))
			is(t, "v", c.read(t, "v"), "f32 6")
		}
		for i := range 3 {
			c.schedule(t, "add and double", c.number(t, float32(3*round+i+1)))
		}
		noError(t, c.coordinator.Join(background))
		_, err := c.coordinator.Restore(path)
		fails(t, err, dist.ErrFailedPrecondition, "before the first closure")
		noError(t, c.coordinator.Save(path))
		is(t, "v", c.read(t, "v"), []string{"f32 6", "f32 21"}[round])
		noError(t, c.coordinator.Close())
	}
	c := newCluster(t, 1, 1, nil)
	_, err := c.coordinator.Restore(path + "x")
	fails(t, err, dist.ErrNotFound, "")
}
