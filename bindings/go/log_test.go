// SPDX-License-Identifier: Apache-2.0

package dist_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"libdist.example/dist"
)

// recorder is a handler that sends the records of a severity or a higher one.
type recorder struct {
	least   slog.Level
	records chan slog.Record
}

func (r recorder) Enabled(_ context.Context, level slog.Level) bool { return level >= r.least }

func (r recorder) Handle(_ context.Context, record slog.Record) error {
	r.records <- record
	return nil
}

func (r recorder) WithAttrs([]slog.Attr) slog.Handler { return r }

func (r recorder) WithGroup(string) slog.Handler { return r }

func TestALoggerGetsTheLogLines(t *testing.T) {
	records := make(chan slog.Record, 8)
	s := newStrategy(t, dist.Options{
		Replicas: 1,
		Threads:  dist.LibraryThreads,
		Log:      dist.LogTo(slog.New(recorder{slog.LevelWarn, records})),
	})
	if err := s.OpenInstances(dist.InstancesOptions{Stuck: time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(background)
	entered, leave := make(chan struct{}), make(chan struct{})
	request := must[*dist.Request](t)(s.Submit(ctx, func(*dist.Replica) error {
		close(entered)
		<-leave
		return nil
	}, dist.SubmitOptions{}))
	<-entered
	cancel() // the function goes on, so libdist replaces its thread and logs that
	record := <-records
	close(leave)
	_ = request.Wait(background)
	if record.Level != slog.LevelWarn || !strings.Contains(record.Message, "has not returned on replica 0") ||
		record.Time.IsZero() {
		t.Error(record)
	}
	if err := s.CloseInstances(background); err != nil {
		t.Error(err)
	}
}

func TestSeveritiesOfLogLines(t *testing.T) {
	records := make(chan slog.Record, 8)
	log := dist.LogTo(slog.New(recorder{slog.LevelWarn, records}))
	log(dist.LogInfo, "not enabled")
	log(dist.LogWarning, "may fail")
	log(dist.LogError, "failed")
	first, second := <-records, <-records
	if first.Level != slog.LevelWarn || first.Message != "may fail" || second.Level != slog.LevelError ||
		second.Message != "failed" || len(records) != 0 {
		t.Error(first, second)
	}
}
