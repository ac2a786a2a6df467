// SPDX-License-Identifier: Apache-2.0

package dist_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"libdist.example/dist"
)

// newNetwork makes a network, which is closed with the test.
func newNetwork(t *testing.T, workers int) *dist.Network {
	t.Helper()
	network, err := dist.NewNetwork(workers, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { network.Close() })
	return network
}

// workerOptions are those of a worker of a cluster of that many.
func workerOptions(t *testing.T, workers, me int) dist.Options {
	t.Helper()
	addresses := make([]string, workers)
	for w := range addresses {
		addresses[w] = fmt.Sprintf("w%d:1", w)
	}
	r, err := dist.NewSimpleResolver(newSpec(t, dist.ClusterJob{Name: "worker", Addresses: addresses}),
		&dist.ResolverOptions{TaskType: dist.Given("worker"), TaskID: dist.Given(me)})
	return dist.Options{Kind: dist.MultiWorkerMirrored, ClusterResolver: closed(t, r, err)}
}

// newWorkers makes a strategy for each worker, with that many replicas.
func newWorkers(t *testing.T, threads dist.Threads, replicas ...int) []*dist.Strategy {
	t.Helper()
	network := newNetwork(t, len(replicas))
	workers := make([]*dist.Strategy, len(replicas))
	for w := range workers {
		options := workerOptions(t, len(replicas), w)
		options.Network, options.ReplicasOfWorkers, options.Threads = network, replicas, threads
		workers[w] = newStrategy(t, options)
	}
	network.Close() // the strategies keep it
	return workers
}

// onWorkers is one program on all workers, each on a goroutine of its own.
func onWorkers(workers []*dist.Strategy, program func(worker int, s *dist.Strategy) error) []error {
	results := make([]error, len(workers))
	var all sync.WaitGroup
	for w, s := range workers {
		all.Add(1)
		go func() {
			defer all.Done()
			results[w] = program(w, s)
		}()
	}
	all.Wait()
	return results
}

func TestWorkerKnowsItsPlace(t *testing.T) {
	for w, s := range newWorkers(t, dist.CallerThread, 2, 1) {
		q, err := s.Properties()
		if err != nil {
			t.Fatal(err)
		}
		is(t, "replicas", s.NumReplicas(), 3)
		is(t, "place", []int{q.NumWorkers, q.Worker, q.NumLocalReplicas, q.FirstReplica}, []int{2, w, 2 - w, 2 * w})
		is(t, "chief", q.ShouldCheckpoint, w == 0)
		is(t, "cluster", []bool{q.InMultiWorkerMode, q.BetweenGraph, q.ShouldInit}, []bool{true, true, true})
		is(t, "device", all(s.Device(2*w)), all(fmt.Sprintf("/job:worker/replica:0/task:%d/device:CPU:0", w), nil))
		_, err = s.Device(2 - 2*w)
		fails(t, err, dist.ErrInvalidArgument, "but the strategy has replicas")
	}
	s := newStrategy(t, dist.Options{Replicas: 2})
	q, err := s.Properties()
	is(t, "alone", all(q.NumWorkers, q.Worker, q.NumLocalReplicas, q.FirstReplica, err), all(1, 0, 2, 0, nil))
}

// read is the tensor of a value that is closed.
func read(v *dist.Value, err error) ([]float32, error) {
	if err != nil {
		return nil, err
	}
	defer v.Close()
	tensor, err := dist.Read[float32](v)
	return tensor.Data, err
}

// train does on a worker all that waits for other workers.
func train(s *dist.Strategy) (seen [][]float32, err error) {
	note := func(data []float32, err error) error {
		seen = append(seen, data)
		return err
	}
	place, err := s.Properties()
	if err != nil {
		return nil, err
	}
	mirrored, err := s.NewVariable(dist.Of([]float32{float32(10 + place.Worker)}), // worker 0's counts
		&dist.VariableOptions{Aggregation: dist.AggregationSum})
	if err != nil {
		return nil, err
	}
	defer mirrored.Close()
	onRead, err := s.NewVariable(nil, &dist.VariableOptions{
		Aggregation: dist.AggregationSum, Synchronization: dist.SynchronizationOnRead,
		Initial: func() (*dist.Value, error) { return dist.NewValue(s, []float32{0}) }})
	if err != nil {
		return nil, err
	}
	defer onRead.Close()
	ids, err := dist.Collect(background, s, func(r *dist.Replica) (int, error) {
		mine := dist.Of([]float32{float32(r.ID() + 1)})
		if r.NumReplicas() != 3 {
			return 0, errors.New("another number of replicas")
		}
		if err := r.Assign(mirrored, dist.AssignAdd, mine); err != nil {
			return 0, err
		}
		return r.ID(), r.Assign(onRead, dist.AssignAdd, mine)
	})
	if err != nil {
		return nil, err
	}
	for i, id := range ids {
		if id != place.FirstReplica+i {
			return nil, fmt.Errorf("replica %d has the result of %d", place.FirstReplica+i, id)
		}
	}
	if err := note(read(mirrored.Read())); err != nil {
		return nil, err
	}
	if err := note(read(onRead.Read())); err != nil {
		return nil, err
	}
	scale, err := dist.NewScalar(s, float32(2))
	if err != nil {
		return nil, err
	}
	defer scale.Close()
	rows, err := s.RunValues(background, func(r *dist.Replica, args, _ *dist.Value) (*dist.Value, error) {
		scale, err := dist.ReadScalar[float32](args.Item(0))
		if err != nil {
			return nil, err
		}
		rows := make([]float32, r.ID()+1) // of another number on each replica
		for i := range rows {
			rows[i] = scale * float32(10*r.ID()+i)
		}
		return dist.NewValue(s, rows)
	}, scale, nil)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	if err := note(read(s.Gather(rows, 0))); err != nil {
		return nil, err
	}
	err = note(read(s.Reduce(dist.Sum, rows, 0)))
	return seen, err
}

func TestWorkersOfOneProcessTrain(t *testing.T) {
	want := [][]float32{{16}, {6}, {0, 20, 22, 40, 42, 44}, {168}}
	for _, threads := range []dist.Threads{dist.CallerThread, dist.LibraryThreads, dist.Goroutines} {
		workers := newWorkers(t, threads, 2, 1)
		for again := 0; again < 3; again++ {
			for w, err := range onWorkers(workers, func(_ int, s *dist.Strategy) error {
				runtime.GC() // whatever is collected now: nothing of another worker's
				seen, err := train(s)
				if err == nil && !reflect.DeepEqual(seen, want) {
					err = fmt.Errorf("%v, want %v", seen, want)
				}
				return err
			}) {
				if err != nil {
					t.Errorf("threads %d, worker %d: %v", threads, w, err)
				}
			}
		}
	}
}

// readRows trains on some rows: the rows of each replica, a list a step, and what came of the training.
func readRows(s *dist.Strategy, asOneProcess bool) (rows map[int][][]float32, trained []float32, err error) {
	w, err := s.NewVariable(dist.Of([]float32{0}), &dist.VariableOptions{Aggregation: dist.AggregationMean})
	if err != nil {
		return nil, nil, err
	}
	defer w.Close()
	d, err := s.NewDataset([]dist.Array{dist.Of([]float32{0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.1})},
		&dist.DatasetOptions{GlobalBatchSize: 5, Shuffle: true, Seed: 3, AsOneProcess: asOneProcess})
	if err != nil {
		return nil, nil, err
	}
	defer d.Close()
	rows = map[int][][]float32{}
	var mu sync.Mutex
	step := func(r *dist.Replica, args, _ *dist.Value) (*dist.Value, error) {
		tensor, err := dist.Read[float32](args.Item(0))
		if err != nil {
			return nil, err
		}
		sum := float32(0)
		for _, x := range tensor.Data {
			sum += x * float32(r.ID()+1)
		}
		mu.Lock()
		rows[r.ID()] = append(rows[r.ID()], append([]float32{}, tensor.Data...))
		mu.Unlock()
		return nil, r.Assign(w, dist.AssignAdd, dist.Of([]float32{sum}))
	}
	for batch, err := range d.Batches() {
		if err != nil {
			return nil, nil, err
		}
		if _, err := s.RunValues(background, step, batch, nil); err != nil {
			return nil, nil, err
		}
	}
	trained, err = read(w.Read())
	return rows, trained, err
}

func TestWorkersReadTheRowsOfOneProcess(t *testing.T) {
	wanted, trained, err := readRows(newStrategy(t, dist.Options{Replicas: 3}), false)
	if err != nil || len(wanted[2]) != 3 {
		t.Fatal(wanted, err)
	}
	for _, asOneProcess := range []bool{true, false} {
		for w, err := range onWorkers(newWorkers(t, dist.CallerThread, 2, 1), func(w int, s *dist.Strategy) error {
			rows, own, err := readRows(s, asOneProcess)
			if err != nil {
				return err
			}
			same := reflect.DeepEqual(own, trained)
			for id, lists := range rows {
				same = same && reflect.DeepEqual(lists, wanted[id])
			}
			if len(rows) != 2-w || same != asOneProcess {
				return fmt.Errorf("%v and %v, of one process %v and %v", rows, own, wanted, trained)
			}
			return nil
		}) {
			if err != nil {
				t.Errorf("as one process %v, worker %d: %v", asOneProcess, w, err)
			}
		}
	}
	_, err = newWorkers(t, dist.CallerThread, 1, 1)[0].NewDataset([]dist.Array{dist.Of([]float32{1, 2})},
		&dist.DatasetOptions{GlobalBatchSize: 2, AsOneProcess: true, ShardPolicy: dist.ShardOff})
	fails(t, err, dist.ErrInvalidArgument, "AsOneProcess is set")
}

func TestWorkersFailTogether(t *testing.T) {
	boom := errors.New("boom")
	workers := newWorkers(t, dist.CallerThread, 1, 2)
	results := onWorkers(workers, func(_ int, s *dist.Strategy) error {
		return s.Run(background, func(r *dist.Replica) error {
			if r.ID() == 2 {
				return boom
			}
			return r.Barrier()
		})
	})
	is(t, "of the worker itself", results[1], boom)
	fails(t, results[0], dist.ErrAborted, "worker 1 failed with UNKNOWN: boom")
	var report *dist.Error
	if !errors.As(results[0], &report) || report.Worker != 1 {
		t.Errorf("%+v", report)
	}
	for w, err := range onWorkers(workers, func(_ int, s *dist.Strategy) error {
		return s.Run(background, func(r *dist.Replica) error { return r.Barrier() })
	}) {
		if err != nil {
			t.Error(w, err)
		}
	}
}

// Whose context is over before its run has told the others.
func TestWorkerWhoseContextIsOver(t *testing.T) {
	workers := newWorkers(t, dist.CallerThread, 1, 1)
	results := onWorkers(workers, func(w int, s *dist.Strategy) error {
		ctx, cancel := context.WithCancel(background)
		defer cancel()
		if w == 1 {
			cancel()
		}
		return s.Run(ctx, func(r *dist.Replica) error { return r.Barrier() })
	})
	fails(t, results[0], dist.ErrAborted, "worker 1")
	fails(t, results[1], dist.ErrCancelled, "")
	if !errors.Is(results[1], context.Canceled) {
		t.Error(results[1])
	}
	for w, err := range onWorkers(workers, func(_ int, s *dist.Strategy) error {
		return s.Run(background, func(r *dist.Replica) error { return r.Barrier() })
	}) {
		if err != nil {
			t.Error(w, err)
		}
	}
}

func TestWorkerThatDoesNotCome(t *testing.T) {
	network := newNetwork(t, 2)
	options := workerOptions(t, 2, 0)
	options.Network, options.Replicas, options.Timeout = network, 1, 20*time.Millisecond
	s := newStrategy(t, options)
	_, err := s.NewVariable(dist.Of([]float32{1}), nil)
	fails(t, err, dist.ErrDeadlineExceeded, "worker 1")
	err = s.Run(background, func(r *dist.Replica) error { return r.Barrier() })
	fails(t, err, dist.ErrDeadlineExceeded, "worker 1")
	var report *dist.Error
	if !errors.As(err, &report) || report.Worker != 1 {
		t.Errorf("%+v", report)
	}

	options = workerOptions(t, 2, 1)
	options.Replicas = 1
	unreached := newStrategy(t, options)
	err = unreached.Run(background, func(r *dist.Replica) error { return r.Barrier() })
	fails(t, err, dist.ErrUnavailable, "worker 1 cannot reach the other workers")
	if hint := err.(*dist.Error).Hint; !strings.Contains(hint, "Options.Network") {
		t.Error(hint)
	}
}

// waits are calls that wait for other workers.
func waits(dir string) map[string]func(s *dist.Strategy) error {
	type call = func(s *dist.Strategy) error
	of := func(use func(s *dist.Strategy, v *dist.Value) (*dist.Value, error)) call {
		return func(s *dist.Strategy) error {
			v, err := dist.NewValue(s, []float32{1})
			if err != nil {
				return err
			}
			defer v.Close()
			_, err = use(s, v)
			return err
		}
	}
	dataset := func(use func(d *dist.Dataset) error) call {
		return func(s *dist.Strategy) error {
			d, err := s.NewDataset([]dist.Array{dist.Of([]float32{1, 2})}, &dist.DatasetOptions{GlobalBatchSize: 2})
			if err != nil {
				return err
			}
			defer d.Close()
			return use(d)
		}
	}
	return map[string]call{
		"NewVariable": func(s *dist.Strategy) error {
			_, err := s.NewVariable(dist.Of([]float32{1}), nil)
			return err
		},
		"Initial": func(s *dist.Strategy) error {
			_, err := s.NewVariable(nil, &dist.VariableOptions{
				Initial: func() (*dist.Value, error) { return dist.NewValue(s, []float32{1}) }})
			return err
		},
		"Reduce": of(func(s *dist.Strategy, v *dist.Value) (*dist.Value, error) { return s.Reduce(dist.Sum, v) }),
		"ReduceTo": of(func(s *dist.Strategy, v *dist.Value) (*dist.Value, error) {
			return s.ReduceTo(dist.Sum, v, nil, nil)
		}),
		"BatchReduceTo": of(func(s *dist.Strategy, v *dist.Value) (*dist.Value, error) {
			_, err := s.BatchReduceTo(dist.Sum, []*dist.Value{v}, nil, nil)
			return nil, err
		}),
		"Gather": of(func(s *dist.Strategy, v *dist.Value) (*dist.Value, error) { return s.Gather(v, 0) }),
		"Batches": dataset(func(d *dist.Dataset) error {
			for _, err := range d.Batches() {
				return err
			}
			return nil
		}),
		"Dataset.Reduce": dataset(func(d *dist.Dataset) error {
			_, err := d.Reduce(nil, func(_, batch *dist.Value) (*dist.Value, error) { return batch.Retain(), nil })
			return err
		}),
		"Metric.Result": func(s *dist.Strategy) error {
			m, err := s.NewMetric(dist.MetricSum, "m")
			if err != nil {
				return err
			}
			defer m.Close()
			_, err = m.Result()
			return err
		},
		"SaveCheckpoint": func(s *dist.Strategy) error {
			return s.SaveCheckpoint(filepath.Join(dir, "nobody-writes-this"), nil, nil)
		},
		"Run": func(s *dist.Strategy) error {
			return s.Run(background, func(r *dist.Replica) error { return r.Barrier() })
		},
	}
}

// waiting is a worker whose peer makes no call.
func waiting(t *testing.T) *dist.Strategy {
	options := workerOptions(t, 2, 0)
	options.Network, options.Replicas, options.Timeout = newNetwork(t, 2), 1, 5*time.Minute
	return newStrategy(t, options)
}

func TestEndWhileItWaitsForWorkers(t *testing.T) {
	for name, wait := range waits(t.TempDir()) {
		for i := 0; i < 10; i++ {
			s, begun, done := waiting(t), make(chan struct{}), make(chan error)
			go func() {
				close(begun)
				done <- wait(s)
			}()
			<-begun
			if err := s.Shutdown(background); err != nil {
				t.Error(name, err)
			}
			// Where Shutdown was first, there is no strategy.
			switch err := <-done; {
			case errors.Is(err, dist.ErrCancelled), errors.Is(err, dist.ErrFailedPrecondition), errors.Is(err, dist.ErrUnavailable):
			default:
				t.Error(name, err)
			}
		}
		// Cancel is for who has begun to wait: until then nothing happens.
		s, done := waiting(t), make(chan error, 1)
		go func() { done <- wait(s) }()
		var err error
		for over := false; !over; {
			if err := s.Cancel(); err != nil {
				t.Fatal(name, err)
			}
			select {
			case err = <-done:
				over = true
			default:
				runtime.Gosched()
			}
		}
		fails(t, err, dist.ErrCancelled, "")
	}
}

func TestNetworkMisuse(t *testing.T) {
	for _, n := range []int{0, -1, 1 << 40} {
		_, err := dist.NewNetwork(n, nil)
		fails(t, err, dist.ErrInvalidArgument, "")
	}
	_, err := dist.NewNetwork(2, &dist.NetworkOptions{CreditBytes: 100})
	fails(t, err, dist.ErrInvalidArgument, "CreditBytes is 100")
	network, err := dist.NewNetwork(2, &dist.NetworkOptions{CreditBytes: 1 << 16})
	if err != nil {
		t.Fatal(err)
	}
	_, err = dist.New(dist.Options{Replicas: 1, Network: network})
	fails(t, err, dist.ErrInvalidArgument, "dist.MultiWorkerMirrored")
	options := workerOptions(t, 2, 0)
	options.Network, options.Replicas, options.ReplicasOfWorkers = network, 1, []int{1, 1 << 40}
	_, err = dist.New(options)
	fails(t, err, dist.ErrInvalidArgument, "ReplicasOfWorkers[1] is 1099511627776")
	options.ReplicasOfWorkers = []int{1}
	_, err = dist.New(options)
	fails(t, err, dist.ErrInvalidArgument, "the cluster has 2 workers")
	options.ReplicasOfWorkers, options.StagingBytes = nil, -1
	_, err = dist.New(options)
	fails(t, err, dist.ErrInvalidArgument, "StagingBytes is -1")
	options.StagingBytes = 1 // the least
	newStrategy(t, options)
	_, err = dist.New(options)
	fails(t, err, dist.ErrFailedPrecondition, "already joined this network")
	is(t, "closed", all(network.Close(), network.Close(), (*dist.Network)(nil).Close()), all(nil, nil, nil))
	options = workerOptions(t, 2, 1)
	options.Network, options.Replicas = network, 1
	_, err = dist.New(options)
	fails(t, err, dist.ErrFailedPrecondition, "network is closed")
}
