// SPDX-License-Identifier: Apache-2.0

package dist_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"libdist.example/dist"
)

type model struct {
	number int64
	ended  atomic.Int32
}

func publish[T any](t *testing.T, v *dist.Versions[T], content T) int64 {
	t.Helper()
	number, err := v.Publish(content)
	if err != nil {
		t.Fatal(err)
	}
	return number
}

func TestVersionsAreSwappedUnderLoad(t *testing.T) {
	tokens := dist.LastToken()
	models, err := dist.NewVersions(func(m *model) { m.ended.Add(1) })
	if err != nil {
		t.Fatal(err)
	}
	s := newStrategy(t, server)
	const rounds = 50
	var all []*model
	var requests []*dist.Request
	for number := int64(1); number <= rounds; number++ {
		all = append(all, &model{number: number})
		if got := publish(t, models, all[number-1]); got != number || models.Latest() != number {
			t.Fatal(got, models.Latest())
		}
		for range 4 {
			requests = append(requests, submit(t, s, func(r *dist.Replica) error {
				before, number, err := dist.SeenVersion(r, models)
				runtime.Gosched()
				after, _, again := dist.SeenVersion(r, models)
				if err != nil || again != nil || before != after || before.number != number || before.ended.Load() != 0 {
					return errors.Join(err, again, errors.New("another version, or one that is over"))
				}
				return nil
			}, dist.SubmitOptions{RequestID: 1000 + number}))
		}
	}
	if err := models.Await(background, rounds); err != nil {
		t.Error(err)
	}
	for i, each := range all {
		if want := int32(1); each.ended.Load() != want && i < rounds-1 || i == rounds-1 && each.ended.Load() != 0 {
			t.Error(i, each.ended.Load())
		}
	}
	for _, request := range requests {
		if err := ends(t, request); err != nil {
			t.Error(err)
		}
	}
	if err := models.Close(); err != nil {
		t.Error(err)
	}
	if err := s.CloseInstances(background); err != nil {
		t.Error(err)
	}
	for i, each := range all {
		if each.ended.Load() != 1 {
			t.Error(i, each.ended.Load())
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	for dist.TokensSince(tokens) > 0 {
		runtime.Gosched()
	}
}

func TestAVersionStaysWhileItIsSeen(t *testing.T) {
	s := newStrategy(t, server)
	ended := make(chan string, 4)
	texts, err := dist.NewVersions(func(text string) {
		ended <- text
		if text == "one" {
			panic("of a release")
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	publish(t, texts, "one")
	inside, release := make(chan struct{}), make(chan struct{})
	request := submit(t, s, func(r *dist.Replica) error {
		if text, number, err := dist.SeenVersion(r, texts); text != "one" || number != 1 || err != nil {
			t.Error(text, number, err)
		}
		if number, err := texts.Publish("two"); number != 2 || err != nil {
			t.Error(number, err)
		}
		if err := texts.Await(background, 2); !errors.Is(err, dist.ErrFailedPrecondition) {
			t.Error(err)
		}
		close(inside)
		<-release
		if text, _, err := dist.SeenVersion(r, texts); text != "one" || err != nil {
			t.Error(text, err)
		}
		return nil
	}, dist.SubmitOptions{})
	<-inside
	soon, cancel := context.WithTimeout(background, time.Millisecond)
	defer cancel()
	if err := texts.Await(soon, 2); !errors.Is(err, dist.ErrDeadlineExceeded) || !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if err := texts.Await(over(), 2); !errors.Is(err, dist.ErrCancelled) || !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if len(ended) != 0 {
		t.Error(<-ended)
	}
	close(release)
	if err := texts.Await(background, 2); err != nil {
		t.Error(err)
	}
	if text := <-ended; text != "one" {
		t.Error(text)
	}
	if err := ends(t, request); err != nil {
		t.Error(err)
	}
	if err := texts.Close(); err != nil || <-ended != "two" {
		t.Error(err)
	}
}

func TestVersionsMisused(t *testing.T) {
	s := newStrategy(t, dist.Options{Replicas: 2})
	numbers, err := dist.NewVersions[int](nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := numbers.Await(background, 1); !errors.Is(err, dist.ErrInvalidArgument) || numbers.Latest() != 0 {
		t.Error(err)
	}
	var gone *dist.Replica
	run := func(want error) {
		t.Helper()
		if err := s.Run(background, func(r *dist.Replica) error {
			if r.ID() == 0 {
				gone = r
			}
			if n, _, err := dist.SeenVersion(r, numbers); !errors.Is(err, want) || err == nil && n != 5 {
				t.Error(n, err)
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
	}
	run(dist.ErrFailedPrecondition) // nothing published
	publish(t, numbers, 5)
	run(nil)
	if _, _, err := dist.SeenVersion(gone, numbers); !errors.Is(err, dist.ErrFailedPrecondition) {
		t.Error(err)
	}
	if _, _, err := dist.SeenVersion(nil, numbers); !errors.Is(err, dist.ErrInvalidArgument) {
		t.Error(err)
	}
	for range 2 {
		if err := numbers.Close(); err != nil {
			t.Error(err)
		}
	}
	run(dist.ErrFailedPrecondition) // closed
	if _, err := numbers.Publish(6); !errors.Is(err, dist.ErrFailedPrecondition) || !strings.Contains(err.Error(), "closed") {
		t.Error(err)
	}
	if err := numbers.Await(background, 1); !errors.Is(err, dist.ErrFailedPrecondition) || numbers.Latest() != 0 {
		t.Error(err)
	}
	var none *dist.Versions[int]
	if _, err := none.Publish(1); !errors.Is(err, dist.ErrInvalidArgument) {
		t.Error(err)
	}
	if err := none.Await(background, 1); !errors.Is(err, dist.ErrInvalidArgument) || none.Latest() != 0 || none.Close() != nil {
		t.Error(err)
	}
}

func TestCPUsOfAStrategy(t *testing.T) {
	if s, err := dist.New(dist.Options{CPUs: []int{-1}}); !errors.Is(err, dist.ErrInvalidArgument) {
		s.Close()
		t.Error(err)
	} else if !strings.Contains(err.Error(), "CPU -1") {
		t.Error(err)
	}
}
