// SPDX-License-Identifier: Apache-2.0

package dist_test

import (
	"fmt"
	"time"

	"libdist.example/dist"
)

// Calls by the names of TRANSCRIPTS.md, but for those of values and datasets, which are in the next file.
var calls = map[string]func(p *player, l *line, a *answer) error{}

func init() {
	for _, table := range []map[string]func(p *player, l *line, a *answer) error{
		nameCalls, strategyCalls, replicaCalls, valueCalls, variableCalls, reduceCalls, datasetCalls, scopeCalls,
		topologyCalls, assignmentCalls, partitionCalls, specCalls, resolverCalls, partitionerCalls,
	} {
		for name, call := range table {
			calls[name] = call
		}
	}
}

func (p *player) strategy(l *line) *dist.Strategy { return get[*dist.Strategy](p, l.given["strategy"]) }
func (p *player) theReplica(l *line) *dist.Replica {
	return get[*dist.Replica](p, l.given["replica"])
}
func (p *player) theValue(l *line, key string) *dist.Value { return get[*dist.Value](p, l.given[key]) }
func (p *player) variable(l *line) *dist.Variable          { return get[*dist.Variable](p, l.given["variable"]) }
func (p *player) crossDevice(l *line) *dist.CrossDevice {
	return get[*dist.CrossDevice](p, l.given["cross_device"])
}

// names are an enum's: of a number, and the number of a name.
type names struct {
	of     func(int) string
	number func(string) (int, error)
}

func namesOf[T interface {
	~int
	fmt.Stringer
}](fromName func(string) (T, error)) names {
	return names{func(number int) string { return T(number).String() },
		func(name string) (int, error) {
			number, err := fromName(name)
			return int(number), err
		}}
}

// valueReductions are the operators that have a number by their names, which are TensorFlow's.
var valueReductions = names{func(number int) string {
	name := dist.ReduceOp(number).String()
	if _, err := dist.ParseReduceOp(name); err != nil {
		return ""
	}
	return name
}, namesOf(dist.ParseReduceOp).number}

// domains are the names by the domains of C: DIST_ENUM_....
var domains = map[int]names{
	0x1903: namesOf(dist.ParseReduceOp), 0x1904: valueReductions, 0x1906: namesOf(dist.ParseSynchronization),
	0x1907: namesOf(dist.ParseAggregation), 0x1908: namesOf(dist.ParseCrossDeviceKind),
	0x1909: namesOf(dist.ParseInputMode), 0x190A: namesOf(dist.ParseShardPolicy),
}

var nameCalls = map[string]func(p *player, l *line, a *answer) error{
	"enum_name": func(_ *player, l *line, a *answer) error {
		a.text("out", domains[l.given.int("domain")].of(l.given.int("value")))
		return nil
	},
	"enum_from_name": func(_ *player, l *line, a *answer) error {
		out, err := domains[l.given.int("domain")].number(l.given.text("name"))
		if err == nil {
			a.int("out", out)
		}
		return err
	},
	"reduce_op_from_aggregation": func(_ *player, l *line, a *answer) error {
		op, err := dist.Aggregation(l.given.int("aggregation")).ReduceOp()
		if err == nil {
			a.int("out", int(op))
		}
		return err
	},
	"communication_options_merge": func(_ *player, l *line, a *answer) error {
		out, err := communication(l, "base").Merge(communication(l, "over"))
		if err == nil {
			a.fields(map[string]int{"out.bytes_per_pack": int(out.BytesPerPack), "out.timeout_ns": int(out.Timeout)})
		}
		return err
	},
}

func one(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// fields are those of a struct; one that is 0 need not be written.
func (a *answer) fields(all map[string]int) {
	for key, got := range all {
		a.seen[key] = true
		if a.line.answered.int(key) != got {
			a.p.fault(a.line, "%s is %d, expected %s", key, got, a.line.answered[key])
		}
	}
}

func communication(l *line, key string) *dist.CommunicationOptions {
	if l.given[key] == "-" {
		return nil
	}
	return &dist.CommunicationOptions{
		BytesPerPack: int64(l.given.int(key + ".bytes_per_pack")),
		Timeout:      time.Duration(l.given.int(key + ".timeout_ns")),
	}
}

var strategyCalls = map[string]func(p *player, l *line, a *answer) error{
	"network_create": func(_ *player, l *line, a *answer) error {
		n, err := dist.NewNetwork(l.given.int("num_workers"),
			&dist.NetworkOptions{CreditBytes: int64(l.given.int("options.credit_bytes"))})
		if err == nil {
			a.object("out", n, n == nil)
		}
		return err
	},
	"network_destroy": func(p *player, l *line, _ *answer) error {
		return get[*dist.Network](p, l.given["network"]).Close()
	},
	"strategy_create": func(p *player, l *line, a *answer) error {
		s, err := dist.New(dist.Options{
			Kind:        dist.Kind(l.given.int("options.kind")),
			Replicas:    l.given.int("options.num_replicas"),
			Timeout:     time.Duration(l.given.int("options.timeout_ns")),
			Devices:     l.given.texts("options.devices"),
			CrossDevice: get[*dist.CrossDevice](p, l.given["options.cross_device"]),

			DeviceAssignment:    get[*dist.DeviceAssignment](p, l.given["options.device_assignment"]),
			UseSPMDPartitioning: l.given.int("options.use_spmd_partitioning") != 0,

			ClusterResolver: get[*dist.ClusterResolver](p, l.given["options.cluster_resolver"]),
			Network:         get[*dist.Network](p, l.given["options.network"]),
			StagingBytes:    int64(l.given.int("options.staging_bytes")),
		})
		if err == nil {
			a.object("out", s, s == nil)
		}
		return err
	},
	"strategy_destroy": func(p *player, l *line, _ *answer) error { return p.strategy(l).Close() },
	"strategy_num_replicas": func(p *player, l *line, a *answer) error {
		a.int("out", p.strategy(l).NumReplicas())
		return nil
	},
	"strategy_kind_of": func(p *player, l *line, a *answer) error {
		a.int("out", int(p.strategy(l).Kind()))
		return nil
	},
	"strategy_device": func(p *player, l *line, a *answer) error {
		name, err := p.strategy(l).Device(l.given.int("replica_id"))
		if err == nil {
			a.text("out", name)
		}
		return err
	},
	"strategy_parameter_device": func(p *player, l *line, a *answer) error {
		name, err := p.strategy(l).ParameterDevice(l.given.int("index"))
		if err == nil {
			a.text("out", name)
		}
		return err
	},
	"strategy_query": func(p *player, l *line, a *answer) error {
		q, err := p.strategy(l).Properties()
		if err == nil {
			a.fields(map[string]int{"out.kind": int(q.Kind), "out.num_replicas": q.NumReplicas,
				"out.num_parameter_devices": q.NumParameterDevices, "out.num_workers": q.NumWorkers,
				"out.in_multi_worker_mode": one(q.InMultiWorkerMode), "out.require_static_shapes": one(q.RequireStaticShapes),
				"out.use_merge_call": one(q.UseMergeCall), "out.between_graph": one(q.BetweenGraph),
				"out.should_init": one(q.ShouldInit), "out.should_checkpoint": one(q.ShouldCheckpoint),
				"out.should_save_summary": one(q.ShouldSaveSummary), "out.global_batch_size": one(q.GlobalBatchSize),
				"out.worker": q.Worker, "out.num_local_replicas": q.NumLocalReplicas, "out.first_replica": q.FirstReplica})
		}
		return err
	},
	"cross_device_create": func(p *player, l *line, a *answer) error {
		options := dist.CrossDeviceOptions{
			Kind:           dist.CrossDeviceKind(l.given.int("options.kind")),
			ReduceToDevice: l.given.text("options.reduce_to_device"),
		}
		if l.given["options.accumulate"] == "1" {
			options.Accumulate = p.accumulate(l)
		}
		c, err := dist.NewCrossDevice(options)
		if err == nil {
			a.object("out", c, c == nil)
		}
		return err
	},
	"cross_device_destroy": func(p *player, l *line, _ *answer) error {
		p.crossDevice(l).Close()
		return nil
	},
	"cross_device_kind_of": func(p *player, l *line, a *answer) error {
		a.int("out", int(p.crossDevice(l).Kind()))
		return nil
	},
	"cross_device_device": func(p *player, l *line, a *answer) error {
		a.text("out", p.crossDevice(l).Device())
		return nil
	},
	"run_values": func(p *player, l *line, a *answer) error {
		fn := p.replica(l)
		if l.given["fn"] != "1" {
			fn = nil
		}
		out, err := p.strategy(l).RunValues(ctx, fn, p.theValue(l, "args"), &dist.RunOptions{
			Kwargs:                  p.theValue(l, "kwargs"),
			EnableDynamicBatchSize:  choice(l.given, "options.enable_dynamic_batch_size"),
			BucketizingDynamicShape: l.given.int("options.bucketizing_dynamic_shape") != 0,
		})
		if err == nil {
			a.value("out", out)
		}
		return err
	},
}

var replicaCalls = map[string]func(p *player, l *line, a *answer) error{
	"replica_enter": func(p *player, l *line, a *answer) error {
		r, err := p.strategy(l).Enter(l.given.int("replica_id"))
		if err == nil {
			a.object("out", r, r == nil)
		}
		return err
	},
	"replica_id": func(p *player, l *line, a *answer) error {
		a.int("out", p.theReplica(l).ID())
		return nil
	},
	"replica_num_replicas": func(p *player, l *line, a *answer) error {
		a.int("out", p.theReplica(l).NumReplicas())
		return nil
	},
	"replica_strategy": func(p *player, l *line, a *answer) error {
		s := p.theReplica(l).Strategy()
		a.object("out", s, s == nil)
		return nil
	},
	"all_reduce": func(p *player, l *line, a *answer) error {
		out := l.given.tensors("out.shape")
		err := p.theReplica(l).AllReduce(dist.ReduceOp(l.given.int("op")), l.given.tensors("in"), out)
		if err == nil {
			a.seen["out"] = true
			for i, literal := range l.answered.array("out") {
				if err := sameTensor(literal, out[i].Raw()); err != nil {
					p.fault(l, "out %d: %v", i, err)
				}
			}
		}
		return err
	},
	"all_reduce_value": func(p *player, l *line, a *answer) error {
		out, err := p.theReplica(l).AllReduceValue(dist.ReduceOp(l.given.int("op")), p.theValue(l, "value"),
			dist.Timeout(time.Duration(l.given.int("options.timeout_ns"))))
		return a.made(out, err)
	},
	"all_gather_value": func(p *player, l *line, a *answer) error {
		out, err := p.theReplica(l).AllGatherValue(p.theValue(l, "value"), dist.Axis(l.given.int("options.axis")))
		return a.made(out, err)
	},
	"merge_call": func(p *player, l *line, a *answer) error {
		out, err := p.theReplica(l).MergeCall(p.merge(l), p.theValue(l, "args"), p.theValue(l, "kwargs"))
		return a.made(out, err)
	},
	"average_loss": func(p *player, l *line, a *answer) error {
		out := l.given.tensor("out.shape")
		err := dist.AverageLoss(p.theReplica(l), l.given.tensor("per_example_loss"), l.given.tensor("sample_weight"),
			int64(l.given.int("global_batch_size")), out)
		if err == nil {
			a.tensor("out", out.Raw())
		}
		return err
	},
	"scale_regularization_loss": func(p *player, l *line, a *answer) error {
		out := l.given.tensor("out.shape")
		err := dist.ScaleRegularizationLoss(p.theReplica(l), l.given.tensor("loss"), out)
		if err == nil {
			a.tensor("out", out.Raw())
		}
		return err
	},
}

// made is a value that a call made.
func (a *answer) made(out *dist.Value, err error) error {
	if err == nil {
		a.value("out", out)
	}
	return err
}
