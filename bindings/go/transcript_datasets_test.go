// SPDX-License-Identifier: Apache-2.0

package dist_test

import (
	"errors"
	"fmt"
	"strings"

	"libdist.example/dist"
)

func datasetOptions(l *line) *dist.DatasetOptions {
	f := l.given
	options := &dist.DatasetOptions{
		GlobalBatchSize: int64(f.int("options.global_batch_size")),
		DropRemainder:   f.int("options.drop_remainder") != 0,
		Shuffle:         f.int("options.shuffle") != 0,
		Seed:            uint64(f.int("options.seed")),
		Prefetch:        f.int("options.prefetch"),
		ShardPolicy:     dist.ShardPolicy(f.int("options.shard_policy")),
		NumWorkers:      f.int("options.num_workers"),
		WorkerIndex:     f.int("options.worker_index"),
		WorkerBatches:   f.int("options.worker_batches") != 0,
		AsOneProcess:    f.int("options.as_one_process") != 0,
		ShardHint:       f.int("options.shard_hint") != 0,
		Interleave:      f.int("options.interleave"),
		StaticShapes:    choice(f, "options.static_shapes"),
		ReplicationMode: dist.InputMode(f.int("options.replication_mode")),
	}
	if _, has := f["options.batch_sizes"]; has {
		options.BatchSizes = []int64{}
		for _, n := range f.ints("options.batch_sizes") {
			options.BatchSizes = append(options.BatchSizes, int64(n))
		}
	}
	return options
}

func (a *answer) dataset(d *dist.Dataset, err error) error {
	if err == nil {
		a.object("out", d, d == nil)
	}
	return err
}

var datasetCalls = map[string]func(p *player, l *line, a *answer) error{
	"dataset_create_from_tensors": func(p *player, l *line, a *answer) error {
		return a.dataset(p.strategy(l).NewDataset(l.given.tensors("tensors"), datasetOptions(l)))
	},
	"dataset_create_from_callback": func(p *player, l *line, a *answer) error {
		return a.dataset(p.strategy(l).NewDatasetFromCallback(p.source(l), datasetOptions(l)))
	},
	"dataset_create_from_files": func(p *player, l *line, a *answer) error {
		return a.dataset(p.strategy(l).NewDatasetFromFiles(l.given.texts("names"), p.fileSource(l), datasetOptions(l)))
	},
	"dataset_create_from_function": func(p *player, l *line, a *answer) error {
		return a.dataset(p.strategy(l).NewDatasetFromFunction(p.dataset(l), datasetOptions(l)))
	},
	"dataset_destroy": func(p *player, l *line, _ *answer) error {
		get[*dist.Dataset](p, l.given["dataset"]).Close()
		return nil
	},
	"dataset_element_spec": func(p *player, l *line, a *answer) error {
		return a.made(get[*dist.Dataset](p, l.given["dataset"]).ElementSpec())
	},
	"input_context_per_replica_batch_size": func(_ *player, l *line, a *answer) error {
		size, err := dist.InputContext{
			NumInputPipelines: l.given.int("context.num_input_pipelines"),
			InputPipelineID:   l.given.int("context.input_pipeline_id"),
			NumReplicasInSync: l.given.int("context.num_replicas_in_sync"),
		}.PerReplicaBatchSize(int64(l.given.int("global_batch_size")))
		if err == nil {
			a.int("out", int(size))
		}
		return err
	},
	"batch_sizes_for_worker": func(_ *player, l *line, a *answer) error {
		f := l.given
		sizes, err := dist.BatchSizesForWorker(int64(f.int("global_batch_size")), f.int("num_workers"),
			f.int("num_replicas_per_worker"), f.int("worker"), f.int("n"))
		if err == nil {
			a.is("out", "("+strings.Trim(fmt.Sprint(sizes), "[]")+")")
		}
		return err
	},
	"iterator_create": func(p *player, l *line, a *answer) error {
		it, err := get[*dist.Dataset](p, l.given["dataset"]).NewIterator()
		if err == nil {
			a.object("out", it, it == nil)
		}
		return err
	},
	"iterator_next": func(p *player, l *line, a *answer) error {
		batch, err := get[*dist.Iterator](p, l.given["iterator"]).Next()
		if errors.Is(err, dist.ErrOutOfRange) {
			err = nil // C returns no batch
		}
		return a.made(batch, err)
	},
	"iterator_next_optional": func(p *player, l *line, a *answer) error {
		return a.made(get[*dist.Iterator](p, l.given["iterator"]).NextOptional())
	},
	"iterator_destroy": func(p *player, l *line, _ *answer) error {
		get[*dist.Iterator](p, l.given["iterator"]).Close()
		return nil
	},
}

var scopeCalls = map[string]func(p *player, l *line, a *answer) error{
	"scope_enter":  func(p *player, l *line, _ *answer) error { return p.strategy(l).EnterScope() },
	"scope_exit":   func(p *player, l *line, _ *answer) error { return p.strategy(l).ExitScope() },
	"set_strategy": func(p *player, l *line, _ *answer) error { return dist.SetStrategy(p.strategy(l)) },
	"get_strategy": func(_ *player, _ *line, a *answer) error {
		s := dist.CurrentStrategy()
		a.object("out", s, s == nil)
		return nil
	},
	"has_strategy": func(_ *player, _ *line, a *answer) error {
		a.bool("out", dist.HasStrategy())
		return nil
	},
	"in_cross_replica_context": func(_ *player, _ *line, a *answer) error {
		a.bool("out", dist.InCrossReplicaContext())
		return nil
	},
	"get_replica": func(_ *player, _ *line, a *answer) error {
		r := dist.CurrentReplica()
		a.object("out", r, r == nil)
		return nil
	},
}
