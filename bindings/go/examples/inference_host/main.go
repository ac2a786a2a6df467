// SPDX-License-Identifier: Apache-2.0

// Inference_host is a sentence encoder behind HTTP, the Go version of ../../../../examples/inference_host,
// whose README describes the requests. libdist decides when, on which replica and in which batch a request
// runs. It also enforces deadlines, priorities and the queue limit, and drains the queue on shutdown.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"libdist.example/dist"
)

type host struct {
	options                  options
	strategy                 *dist.Strategy
	batcher                  *dist.Batcher
	versions                 *dist.Versions[*model]
	latest                   *model // the latest of versions
	server                   *server
	swapping                 atomic.Bool
	accepted, answered, gone atomic.Int64
}

// request is an item of the batcher. The step sets the vector and the version that computed it.
type request struct {
	text
	version int64
}

// ---- Instances
// -----------------------------------------------------------------------------------------------

func (h *host) warmUp(r *dist.Replica) error {
	latest, _, err := dist.SeenVersion(r, h.versions)
	if err != nil {
		return err
	}
	return latest.warmUp(dist.InstanceState[*workspace](r), h.options.texts)
}

func (h *host) step(r *dist.Replica, batch *dist.Batch) error {
	latest, version, err := dist.SeenVersion(r, h.versions)
	if err != nil {
		return err
	}
	texts := make([]*text, batch.Size())
	for i := range texts {
		one := batch.UserData(i).(*request)
		one.version, texts[i] = version, &one.text
	}
	err = latest.encode(dist.InstanceState[*workspace](r), texts)
	for i, one := range texts {
		if one.err != nil {
			batch.End(i, one.err)
		}
	}
	return err
}

// ---- Requests ------------------------------------------------------------------------------------------------

func (h *host) encode(e *exchange) {
	ids, err := parseIDs(e.body)
	deadline := e.number("deadline-ms", 1, 1000000000, &err)
	priority := e.number("priority", dist.PriorityMin, dist.PriorityMax, &err)
	asked := &request{text: text{ids: ids}}
	var item *dist.Item
	if err == nil {
		item, err = h.batcher.Submit(e.Context(), asked, dist.ItemOptions{
			Priority: priority, Timeout: time.Duration(deadline) * time.Millisecond, Length: int64(len(ids)),
		})
	}
	if err != nil {
		e.answer(nil, err)
		return
	}
	h.accepted.Add(1)
	<-item.Done() // completes soon after a disconnect, because that cancels the context
	count := &h.gone
	if e.answer(&embedding{asked.version, asked.vector}, item.Err()) {
		count = &h.answered
	}
	count.Add(1)
}

func (h *host) swap(e *exchange) {
	version, err := h.replace(e)
	e.answer(&published{version}, err)
}

// replace publishes a model and returns when no request uses the old version any more.
func (h *host) replace(e *exchange) (version int64, err error) {
	if !h.swapping.CompareAndSwap(false, true) {
		return 0, dist.Errorf(dist.ErrUnavailable, "another swap is under way")
	}
	defer h.swapping.Store(false)
	path, err := parsePath(e.body, h.options.models)
	if err == nil {
		version, err = h.publish(path)
	}
	if err == nil {
		err = h.versions.Await(e.Context(), version)
	}
	return version, err
}

// publish makes a file's model the current version, if it has the same sizes as the previous one.
func (h *host) publish(path string) (version int64, err error) {
	loaded, err := load(h.strategy, path, h.latest)
	if err != nil {
		return 0, err
	}
	if version, err = h.versions.Publish(loaded); err != nil {
		loaded.release()
		return 0, err
	}
	h.latest = loaded
	return version, nil
}

func (h *host) health(e *exchange) {
	now := health{Draining: h.server.draining.Load(), Version: h.versions.Latest(), Accepted: h.accepted.Load(),
		Answered: h.answered.Load(), Gone: h.gone.Load()}
	now.Waiting, now.Active = h.batcher.Count()
	e.json(now.code(), &now)
}

func (h *host) metrics(e *exchange) {
	text, err := h.strategy.WriteMetrics("")
	e.metrics(text, err)
}

// ---- Start and shutdown
// --------------------------------------------------------------------------------------

func (h *host) start() (err error) {
	o := &h.options
	h.strategy, err = dist.New(dist.Options{Replicas: o.replicas, Threads: dist.LibraryThreads})
	if err == nil {
		h.versions, err = dist.NewVersions((*model).release)
	}
	if err == nil {
		_, err = h.publish(filepath.Join(o.models, o.file))
	}
	if err == nil {
		err = h.strategy.OpenInstances(dist.InstancesOptions{
			CreateState: newWorkspace, DestroyState: destroyWorkspace, WarmUp: h.warmUp,
		})
	}
	if err == nil {
		h.batcher, err = h.strategy.NewBatcher(h.step, dist.BatcherOptions{
			MaxItems: o.texts, MaxWaiting: o.requests, MaxDelay: o.delay, Buckets: []int64{16, 32, 64, 128, mostTokens},
		})
	}
	if err == nil {
		h.server, err = listen(o.port, map[string]func(*exchange){
			"POST /encode": h.encode, "POST /swap": h.swap, "GET /health": h.health, "GET /metrics": h.metrics,
		})
	}
	return err
}

// stop answers all accepted requests and accepts no new ones.
func (h *host) stop() error {
	h.server.drain()
	ctx, cancel := context.WithTimeout(context.Background(), h.options.drain)
	defer cancel()
	err := h.strategy.CloseInstances(ctx)
	h.server.stop()
	fmt.Printf("accepted %d, answered %d, gone %d\n", h.accepted.Load(), h.answered.Load(), h.gone.Load())
	if err == nil && h.accepted.Load() != h.answered.Load()+h.gone.Load() {
		err = dist.Errorf(dist.ErrDeadlineExceeded, "a client does not take its answer")
	}
	return err
}

func main() {
	h := &host{options: parseOptions()}
	ends := make(chan os.Signal, 1)
	signal.Notify(ends, syscall.SIGTERM, syscall.SIGINT)
	err := h.start()
	if err == nil {
		fmt.Println(h.server.address())
		<-ends
		err = h.stop()
	}
	if err = errors.Join(err, h.batcher.Close(), h.strategy.Close(), h.versions.Close()); err != nil {
		fmt.Fprintln(os.Stderr, "inference_host:", err)
		os.Exit(1)
	}
}
