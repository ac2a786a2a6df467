// SPDX-License-Identifier: Apache-2.0

package dist_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"libdist.example/dist"
)

func newBatcher(t *testing.T, s *dist.Strategy, step dist.StepFunc, options dist.BatcherOptions) *dist.Batcher {
	t.Helper()
	batcher, err := s.NewBatcher(step, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := batcher.Close(); err != nil {
			t.Error(err)
		}
	})
	return batcher
}

func item(t *testing.T, b *dist.Batcher, userData any, options dist.ItemOptions) *dist.Item {
	t.Helper()
	made, err := b.Submit(background, userData, options)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func TestItemsAreAnsweredTogether(t *testing.T) {
	s := newStrategy(t, server)
	var wrong atomic.Int32
	batcher := newBatcher(t, s, func(r *dist.Replica, batch *dist.Batch) error {
		if batch.Size() < 1 || batch.Size() > 4 || batch.Bucket() != 8 && batch.Bucket() != 64 || r.Strategy() != s {
			wrong.Add(1)
		}
		for i := range batch.Size() {
			if err := batch.Check(i); err != nil {
				return err
			}
			*batch.UserData(i).(*int)++
		}
		if !errors.Is(batch.Check(batch.Size()), dist.ErrInvalidArgument) || batch.UserData(-1) != nil || batch.State(0) != nil {
			wrong.Add(1)
		}
		return nil
	}, dist.BatcherOptions{MaxItems: 4, Buckets: []int64{8, 64}})
	answers := make([]int, 200)
	var items []*dist.Item
	for i := range answers {
		items = append(items, item(t, batcher, &answers[i], dist.ItemOptions{Length: int64(i % 65)}))
	}
	for i, each := range items {
		if err := each.Wait(background); err != nil || answers[i] != 1 || each.UserData() != &answers[i] {
			t.Fatal(i, err, answers[i])
		}
		if _, more, err := each.Take(background); more || err != nil {
			t.Fatal(more, err)
		}
	}
	if waiting, active := batcher.Count(); waiting != 0 || active != 0 || wrong.Load() != 0 {
		t.Error(waiting, active, wrong.Load())
	}
	if _, err := batcher.Submit(background, nil, dist.ItemOptions{Length: 65}); !errors.Is(err, dist.ErrInvalidArgument) {
		t.Error(err)
	}
	if _, err := batcher.Submit(over(), nil, dist.ItemOptions{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := s.NewBatcher(nil, dist.BatcherOptions{}); !errors.Is(err, dist.ErrInvalidArgument) {
		t.Error(err)
	}
	var none *dist.Batcher
	if _, err := none.Submit(background, nil, dist.ItemOptions{}); !errors.Is(err, dist.ErrInvalidArgument) {
		t.Error(err)
	}
	if err := none.Close(); err != nil {
		t.Error(err)
	}
}

func TestWhatItemsFailWith(t *testing.T) {
	s := newStrategy(t, server)
	boom, mine := errors.New("boom"), errors.New("mine")
	batcher := newBatcher(t, s, func(_ *dist.Replica, batch *dist.Batch) error {
		for i := range batch.Size() {
			switch batch.UserData(i) {
			case "well":
				batch.End(i, nil)
			case "mine":
				batch.End(i, mine)
			case "panic":
				panic(boom)
			}
		}
		return boom
	}, dist.BatcherOptions{MaxItems: 1})
	for data, want := range map[string]error{"well": nil, "mine": mine, "none": boom, "panic": boom} {
		err := item(t, batcher, data, dist.ItemOptions{}).Wait(background)
		if !errors.Is(err, want) {
			t.Error(data, err)
		}
	}
}

func TestItemsStayAndGiveResults(t *testing.T) {
	tokens := dist.LastToken()
	s := open(t, server)
	batcher, err := s.NewBatcher(func(_ *dist.Replica, batch *dist.Batch) error {
		for i := range batch.Size() {
			left, begun := batch.State(i).(int)
			if !begun {
				left = batch.UserData(i).(int)
			}
			left--
			batch.SetState(i, left)
			if err := batch.Emit(i, fmt.Sprint("token ", left)); err != nil {
				return err
			}
			if left == 0 {
				batch.End(i, nil)
			}
		}
		return nil
	}, dist.BatcherOptions{Continuous: true, MaxResults: 2})
	if err != nil {
		t.Fatal(err)
	}
	var items []*dist.Item
	lengths := []int{3, 1, 50, 7}
	for _, length := range lengths {
		items = append(items, item(t, batcher, length, dist.ItemOptions{}))
	}
	for i, each := range items {
		for left := lengths[i] - 1; left >= 0; left-- {
			token, ok, err := each.Take(background)
			if err != nil || !ok || token != fmt.Sprint("token ", left) {
				t.Fatal(token, ok, err)
			}
		}
		if token, ok, err := each.Take(background); ok || err != nil {
			t.Error(token, err)
		}
	}
	// Nobody takes from it: it stays until its context ends.
	ctx, cancel := context.WithCancel(background)
	slow, err := batcher.Submit(ctx, 1000, dist.ItemOptions{Timeout: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok, err := slow.Take(background); !ok || err != nil {
		t.Error(ok, err)
	}
	if err := batcher.Close(); !errors.Is(err, dist.ErrFailedPrecondition) {
		t.Error(err)
	}
	cancel()
	<-slow.Done()
	if err := slow.Err(); !errors.Is(err, dist.ErrCancelled) || !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := batcher.Close(); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if left := dist.TokensSince(tokens); left != 0 {
		t.Error("tokens are left:", left)
	}
}

func TestWhatHasEndedArrivesHoweverLate(t *testing.T) {
	step := func(_ *dist.Replica, batch *dist.Batch) error {
		for i := range batch.Size() {
			if err := batch.Emit(i, "token"); err != nil {
				return err
			}
		}
		return nil
	}
	first := func(s *dist.Strategy) (*dist.Batcher, *dist.Item) {
		batcher, err := s.NewBatcher(step, dist.BatcherOptions{Continuous: true, MaxResults: 2})
		if err != nil {
			t.Fatal(err)
		}
		made := item(t, batcher, nil, dist.ItemOptions{})
		if token, ok, err := made.Take(background); !ok || err != nil {
			t.Fatal(token, ok, err)
		}
		return batcher, made
	}
	end := func(s *dist.Strategy, batcher *dist.Batcher) error {
		if err := s.CloseInstances(background); err != nil {
			return err
		}
		if err := batcher.Close(); err != nil {
			return err
		}
		return s.Close()
	}

	other, s := open(t, server), open(t, server)
	busy, busyItem := first(other)
	batcher, ended := first(s)
	release := dist.HoldItem(busyItem) // its next token arrives before the other item's end
	ended.Cancel()
	for waiting, active := batcher.Count(); waiting+active > 0; waiting, active = batcher.Count() {
		runtime.Gosched()
	}
	closed := make(chan error, 1)
	go func() { closed <- end(s, batcher) }()
	for range 1000 {
		runtime.Gosched()
	}
	release()
	if err := <-closed; err != nil {
		t.Error(err)
	}
	busyItem.Cancel()
	if err := end(other, busy); err != nil {
		t.Error(err)
	}
}
