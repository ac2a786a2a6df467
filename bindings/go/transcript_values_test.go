// SPDX-License-Identifier: Apache-2.0

package dist_test

import (
	"libdist.example/dist"
)

func (p *player) items(l *line, key string) []*dist.Value { return values(p, l.given.array(key)) }

var valueCalls = map[string]func(p *player, l *line, a *answer) error{
	"value_create_tensor": func(p *player, l *line, a *answer) error {
		return a.made(p.strategy(l).NewTensor(l.given.tensor("tensor")))
	},
	"value_create_per_replica": func(p *player, l *line, a *answer) error {
		return a.made(p.strategy(l).NewPerReplica(p.items(l, "items")...))
	},
	"value_create_mirrored": func(p *player, l *line, a *answer) error {
		return a.made(p.strategy(l).NewMirrored(p.items(l, "items")...))
	},
	"value_create_list": func(p *player, l *line, a *answer) error {
		return a.made(p.strategy(l).NewList(p.items(l, "items")...))
	},
	"value_create_tuple": func(p *player, l *line, a *answer) error {
		return a.made(p.strategy(l).NewTuple(p.items(l, "items")...))
	},
	"value_create_dict": func(p *player, l *line, a *answer) error {
		entries := map[string]*dist.Value{}
		items := p.items(l, "items")
		for i, key := range l.given.texts("keys") {
			entries[key] = items[i]
		}
		return a.made(p.strategy(l).NewDict(entries))
	},
	"value_create_none": func(p *player, l *line, a *answer) error { return a.made(p.strategy(l).NewNone()) },
	"value_create_text": func(p *player, l *line, a *answer) error {
		return a.made(p.strategy(l).NewText(l.given.text("text")))
	},
	"value_create_composite": func(p *player, l *line, a *answer) error {
		return a.made(p.strategy(l).NewComposite(dist.ValueKind(l.given.int("kind")), p.items(l, "parts")...))
	},
	"value_create_variable": func(p *player, l *line, a *answer) error { return a.made(p.variable(l).Value()) },
	"values_from_function": func(p *player, l *line, a *answer) error {
		return a.made(p.strategy(l).NewPerReplicaFromFunction(p.value(l)))
	},
	"value_item": func(p *player, l *line, a *answer) error {
		item := p.theValue(l, "value").Item(l.given.int("index"))
		a.object("out", item, item == nil)
		return nil
	},
	"value_get": func(p *player, l *line, a *answer) error {
		item := p.theValue(l, "value").Get(l.given.text("key"))
		a.object("out", item, item == nil)
		return nil
	},
	"value_tensor": func(p *player, l *line, a *answer) error {
		return p.theValue(l, "value").View(func(tensor dist.RawTensor) error {
			a.tensor("out_tensor", tensor)
			return nil
		})
	},
	"value_container": func(p *player, l *line, a *answer) error {
		variable := p.theValue(l, "value").Container()
		a.object("out", variable, variable == nil)
		return nil
	},
	"strategy_local_results": func(p *player, l *line, a *answer) error {
		return a.made(p.strategy(l).LocalResults(p.theValue(l, "value")))
	},
}

func (p *player) variableOptions(l *line) *dist.VariableOptions {
	options := &dist.VariableOptions{
		Name:            l.given.text("options.name"),
		Aggregation:     dist.Aggregation(l.given.int("options.aggregation")),
		Synchronization: dist.Synchronization(l.given.int("options.synchronization")),
	}
	if l.given["options.initial_fn"] == "1" {
		options.Initial = p.initial(l)
	}
	return options
}

var variableCalls = map[string]func(p *player, l *line, a *answer) error{
	"variable_create": func(p *player, l *line, a *answer) error {
		v, err := p.strategy(l).NewVariable(l.given.tensor("initial"), p.variableOptions(l))
		if err == nil {
			a.object("out", v, v == nil)
		}
		return err
	},
	"replica_variable": func(p *player, l *line, a *answer) error {
		v, err := p.theReplica(l).Variable(l.given.text("name"), l.given.tensor("initial"), p.variableOptions(l))
		if err == nil {
			a.object("out", v, v == nil)
		}
		return err
	},
	"variable_destroy": func(p *player, l *line, _ *answer) error {
		p.variable(l).Close()
		return nil
	},
	"variable_name": func(p *player, l *line, a *answer) error {
		a.text("out", p.variable(l).Name())
		return nil
	},
	"variable_class": func(p *player, l *line, a *answer) error {
		a.text("out", p.variable(l).Class())
		return nil
	},
	"variable_synchronization": func(p *player, l *line, a *answer) error {
		a.int("out", int(p.variable(l).Synchronization()))
		return nil
	},
	"variable_aggregation": func(p *player, l *line, a *answer) error {
		a.int("out", int(p.variable(l).Aggregation()))
		return nil
	},
	"variable_num_copies": func(p *player, l *line, a *answer) error {
		a.int("out", p.variable(l).NumCopies())
		return nil
	},
	"variable_copy_name": func(p *player, l *line, a *answer) error {
		a.text("out", p.variable(l).CopyName(l.given.int("copy")))
		return nil
	},
	"variable_device": func(p *player, l *line, a *answer) error {
		name, err := p.variable(l).Device(l.given.int("copy"))
		if err == nil {
			a.text("out", name)
		}
		return err
	},
	"variable_created_in_scope": func(p *player, l *line, a *answer) error {
		created, err := p.strategy(l).CreatedInScope(p.theValue(l, "variable"))
		if err == nil {
			a.bool("out", created)
		}
		return err
	},
	"variable_component": func(p *player, l *line, a *answer) error {
		tensor, err := p.variable(l).Component(l.given.int("replica_id"))
		if err == nil {
			a.tensor("out", tensor)
		}
		return err
	},
	"variable_read": func(p *player, l *line, a *answer) error {
		return a.made(p.variable(l).Read())
	},
	"variable_assign": func(p *player, l *line, _ *answer) error {
		return p.variable(l).Assign(dist.Assign(l.given.int("how")), p.theValue(l, "value"))
	},
	"variable_scatter": func(p *player, l *line, _ *answer) error {
		return p.variable(l).Scatter(dist.Scatter(l.given.int("how")), p.theValue(l, "slices"))
	},
	"replica_read": func(p *player, l *line, a *answer) error {
		return a.made(p.theReplica(l).Read(p.variable(l)))
	},
	"replica_assign": func(p *player, l *line, _ *answer) error {
		return p.theReplica(l).Assign(p.variable(l), dist.Assign(l.given.int("how")), l.given.tensor("value"))
	},
	"replica_assign_value": func(p *player, l *line, _ *answer) error {
		return p.theReplica(l).AssignValue(p.variable(l), dist.Assign(l.given.int("how")), p.theValue(l, "value"))
	},
	"replica_scatter": func(p *player, l *line, _ *answer) error {
		return p.theReplica(l).Scatter(p.variable(l), dist.Scatter(l.given.int("how")), p.theValue(l, "slices"))
	},
	"colocate_enter": func(p *player, l *line, _ *answer) error {
		return p.strategy(l).EnterColocation(p.theValue(l, "variable"))
	},
	"colocate_exit": func(p *player, l *line, _ *answer) error { return p.strategy(l).ExitColocation() },
}

// destination is nil where the transcript says that it is NULL.
func (p *player) destination(l *line, key string) *dist.Destination {
	if l.given[key] == "-" {
		return nil
	}
	return &dist.Destination{
		Variable: get[*dist.Variable](p, l.given[key+".variable"]),
		Value:    get[*dist.Value](p, l.given[key+".value"]),
		Device:   l.given.text(key + ".device"),
	}
}

func (p *player) destinations(l *line, n int) []dist.Destination {
	if l.given["destinations"] == "-" {
		return nil
	}
	list := make([]dist.Destination, n)
	for i := range list {
		list[i] = *p.destination(l, "destinations"+string(rune('0'+i)))
	}
	return list
}

// all are values that a call made.
func (a *answer) all(out []*dist.Value, err error) error {
	if err == nil {
		for i, v := range out {
			a.value("out"+string(rune('0'+i)), v)
		}
	}
	return err
}

var reduceCalls = map[string]func(p *player, l *line, a *answer) error{
	"reduce": func(p *player, l *line, a *answer) error {
		return a.made(p.strategy(l).Reduce(dist.ReduceOp(l.given.int("op")), p.theValue(l, "value"), l.given.ints("axes")...))
	},
	"reduce_to": func(p *player, l *line, a *answer) error {
		return a.made(p.strategy(l).ReduceTo(dist.ReduceOp(l.given.int("op")), p.theValue(l, "value"),
			p.destination(l, "destination"), nil))
	},
	"batch_reduce_to": func(p *player, l *line, a *answer) error {
		items := p.items(l, "values")
		return a.all(p.strategy(l).BatchReduceTo(dist.ReduceOp(l.given.int("op")), items, p.destinations(l, len(items)), nil))
	},
	"broadcast_to": func(p *player, l *line, a *answer) error {
		return a.made(p.strategy(l).BroadcastTo(p.theValue(l, "value"), p.destination(l, "destination")))
	},
	"gather": func(p *player, l *line, a *answer) error {
		return a.made(p.strategy(l).Gather(p.theValue(l, "value"), l.given.int("axis")))
	},
	"destination_device": func(p *player, l *line, a *answer) error {
		name, err := p.strategy(l).DestinationDevice(p.destination(l, "destination"))
		if err == nil {
			a.text("out", name)
		}
		return err
	},
	"cross_device_reduce": func(p *player, l *line, a *answer) error {
		return a.made(p.crossDevice(l).Reduce(dist.ReduceOp(l.given.int("op")), p.theValue(l, "value"),
			p.destination(l, "destination")))
	},
	"cross_device_batch_reduce": func(p *player, l *line, a *answer) error {
		items := p.items(l, "values")
		return a.all(p.crossDevice(l).BatchReduce(dist.ReduceOp(l.given.int("op")), items, p.destinations(l, len(items))))
	},
	"cross_device_broadcast": func(p *player, l *line, a *answer) error {
		return a.made(p.crossDevice(l).Broadcast(p.theValue(l, "value"), p.destination(l, "destination")))
	},
	"update": func(p *player, l *line, a *answer) error {
		return a.made(p.strategy(l).Update(p.variable(l), p.update(l), p.theValue(l, "args"), p.updateOptions(l)))
	},
	"replica_update": func(p *player, l *line, a *answer) error {
		return a.made(p.theReplica(l).Update(p.variable(l), p.update(l), p.theValue(l, "args"), p.updateOptions(l)))
	},
}

func (p *player) updateOptions(l *line) *dist.UpdateOptions {
	return &dist.UpdateOptions{
		Kwargs:    p.theValue(l, "kwargs"),
		Parallel:  l.given.int("options.parallel") != 0,
		Ungrouped: l.given.int("options.ungrouped") != 0,
	}
}
