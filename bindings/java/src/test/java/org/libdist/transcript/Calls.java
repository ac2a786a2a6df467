// SPDX-License-Identifier: Apache-2.0

package org.libdist.transcript;

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.NoSuchElementException;
import org.libdist.Assign;
import org.libdist.BatchIterator;
import org.libdist.CollectiveOptions;
import org.libdist.CrossDevice;
import org.libdist.CrossDeviceKind;
import org.libdist.Dataset;
import org.libdist.Destination;
import org.libdist.Dist;
import org.libdist.InputContext;
import org.libdist.Losses;
import org.libdist.Network;
import org.libdist.NetworkOptions;
import org.libdist.StrategyProperties;
import org.libdist.ReduceOp;
import org.libdist.Replica;
import org.libdist.Scatter;
import org.libdist.Scope;
import org.libdist.Strategy;
import org.libdist.Tensor;
import org.libdist.Value;
import org.libdist.ValueKind;
import org.libdist.UpdateOptions;
import org.libdist.Variable;

/** One entry for each call of TRANSCRIPTS.md's table. */
final class Calls {
    /** A call: the line says with what; the answers are put into {@code came}. */
    @FunctionalInterface
    interface Call {
        void perform(Player player, Line line, Map<String, String> came) throws Exception;
    }

    static final Map<String, Call> ALL = new HashMap<>();

    private Calls() {}

    private static Strategy strategy(Player p, Line l) {
        return p.object(Strategy.class, l, "strategy");
    }

    private static Replica replica(Player p, Line l) {
        return p.object(Replica.class, l, "replica");
    }

    private static Variable variable(Player p, Line l) {
        return p.object(Variable.class, l, "variable");
    }

    private static Value value(Player p, Line l, String key) {
        return p.object(Value.class, l, key);
    }

    static ReduceOp op(Line l) {
        return Codes.get(ReduceOp.class, l.number("op"));
    }

    private static Tensor tensor(Line l, String key) {
        return l.has(key) ? Literals.tensor(l.given.get(key)) : null;
    }

    private static List<Value> values(Player p, Line l, String key) {
        return l.items(key).stream().map(name -> p.named(Value.class, name)).toList();
    }

    /** A destination of fields that begin with {@code prefix}; null: none. */
    private static Destination destination(Player p, Line l, String prefix) {
        if (l.has(prefix + "variable")) {
            return Destination.of(p.object(Variable.class, l, prefix + "variable"));
        }
        if (l.has(prefix + "value")) {
            return Destination.of(value(p, l, prefix + "value"));
        }
        return l.has(prefix + "device") ? Destination.device(l.text(prefix + "device")) : null;
    }

    private static List<Destination> destinations(Player p, Line l, int n) {
        if ("-".equals(l.given.get("destinations"))) {
            return null;
        }
        List<Destination> all = new ArrayList<>();
        for (int i = 0; i < n; i++) {
            all.add(destination(p, l, "destinations" + i + "."));
        }
        return all;
    }

    @FunctionalInterface
    interface ValueCall {
        Value perform(Player player, Line line) throws Exception;
    }

    static void value(String name, ValueCall call) {
        ALL.put(name, (p, l, came) -> p.bindValue(l.answered, came, "out", call.perform(p, l)));
    }

    @FunctionalInterface
    interface ObjectCall {
        Object perform(Player player, Line line) throws Exception;
    }

    static void object(String name, ObjectCall call) {
        ALL.put(name, (p, l, came) -> came.put("out", p.bind(l.answered, "out", call.perform(p, l))));
    }

    static void number(String name, ObjectCall call) {
        ALL.put(name, (p, l, came) -> came.put("out", call.perform(p, l).toString()));
    }

    static void flag(String name, ObjectCall call) {
        number(name, (p, l) -> (Boolean) call.perform(p, l) ? 1 : 0);
    }

    static void text(String name, ObjectCall call) {
        ALL.put(name, (p, l, came) -> came.put("out", Literals.ofText((String) call.perform(p, l))));
    }

    @FunctionalInterface
    interface Act {
        void perform(Player player, Line line) throws Exception;
    }

    static void act(String name, Act call) {
        ALL.put(name, (p, l, came) -> call.perform(p, l));
    }

    private static void strategies() {
        object("cross_device_create",
                (p, l) -> l.number("options.kind") == 0x1001
                        ? CrossDevice.createReductionToOneDevice(l.text("options.reduce_to_device"),
                                l.has("options.accumulate") ? Functions.accumulate(p, l) : null)
                        : CrossDevice.create(Codes.get(CrossDeviceKind.class, l.number("options.kind"))));
        act("cross_device_destroy", (p, l) -> p.object(CrossDevice.class, l, "cross_device").close());
        number("cross_device_kind_of",
                (p, l) -> Codes.of(p.object(CrossDevice.class, l, "cross_device").kind()));
        text("cross_device_device", (p, l) -> p.object(CrossDevice.class, l, "cross_device").device());
        object("network_create",
                (p, l) -> Network.create(l.number("num_workers"),
                                NetworkOptions.DEFAULT.creditBytes(l.integer("options.credit_bytes"))));
        act("network_destroy", (p, l) -> p.object(Network.class, l, "network").close());
        object("strategy_create", (p, l) -> Strategy.create(Options.strategy(p, l)));
        act("strategy_destroy", (p, l) -> strategy(p, l).close());
        number("strategy_num_replicas", (p, l) -> strategy(p, l).numReplicas());
        number("strategy_kind_of", (p, l) -> Codes.of(strategy(p, l).kind()));
        text("strategy_device", (p, l) -> strategy(p, l).device(l.number("replica_id")));
        text("strategy_parameter_device", (p, l) -> strategy(p, l).parameterDevice(l.number("index")));
        ALL.put("strategy_query", (p, l, came) -> query(strategy(p, l).properties(), came));
        value("run_values",
                (p, l) -> strategy(p, l).run(Functions.replica(p, l), value(p, l, "args"),
                                value(p, l, "kwargs"), Options.run(l)));
        object("replica_enter", (p, l) -> strategy(p, l).enter(l.number("replica_id")));
        act("replica_leave", (p, l) -> replica(p, l).leave());
        number("replica_id", (p, l) -> replica(p, l).id());
        number("replica_num_replicas", (p, l) -> replica(p, l).numReplicas());
        object("replica_strategy", (p, l) -> replica(p, l).strategy());
    }

    private static void query(StrategyProperties q, Map<String, String> came) {
        Map<String, Object> fields = new LinkedHashMap<>();
        fields.put("kind", Codes.of(q.kind()));
        fields.put("num_replicas", q.numReplicas());
        fields.put("num_parameter_devices", q.numParameterDevices());
        fields.put("num_workers", q.numWorkers());
        fields.put("in_multi_worker_mode", q.inMultiWorkerMode());
        fields.put("require_static_shapes", q.requireStaticShapes());
        fields.put("use_merge_call", q.useMergeCall());
        fields.put("between_graph", q.betweenGraph());
        fields.put("should_init", q.shouldInit());
        fields.put("should_checkpoint", q.shouldCheckpoint());
        fields.put("should_save_summary", q.shouldSaveSummary());
        fields.put("global_batch_size", q.globalBatchSize());
        fields.put("worker", q.worker());
        fields.put("num_local_replicas", q.numLocalReplicas());
        fields.put("first_replica", q.firstReplica());
        fields.forEach(
                (name, field) -> came.put("out." + name,
                                field instanceof Boolean ? ((Boolean) field ? "1" : "0") : field.toString()));
    }

    private static void collectives() {
        ALL.put("all_reduce", (p, l, came) -> {
            List<Tensor> in = l.items("in").stream().map(Literals::tensor).toList();
            List<Tensor> out = l.items("out.shape").stream().map(Literals::tensor).toList();
            replica(p, l).allReduce(op(l), in, out, CollectiveOptions.DEFAULT);
            came.put("out", Literals.array(out, Literals::of));
        });
        value("all_reduce_value",
                (p, l) -> replica(p, l).allReduce(op(l), value(p, l, "value"),
                                CollectiveOptions.DEFAULT.timeout(
                                        Duration.ofNanos(l.integer("options.timeout_ns")))));
        value("all_gather_value",
                (p, l) -> replica(p, l).allGather(
                                value(p, l, "value"), CollectiveOptions.DEFAULT.axis(l.number("options.axis"))));
        value("merge_call",
                (p, l) -> replica(p, l).mergeCall(
                                Functions.merge(p, l), value(p, l, "args"), value(p, l, "kwargs"),
                                CollectiveOptions.DEFAULT));
        ALL.put("average_loss", (p, l, came) -> {
            Tensor out = tensor(l, "out.shape");
            Losses.averageLoss(replica(p, l), tensor(l, "per_example_loss"), tensor(l, "sample_weight"),
                    l.integer("global_batch_size"), out);
            came.put("out", Literals.of(out));
        });
        ALL.put("scale_regularization_loss", (p, l, came) -> {
            Tensor out = tensor(l, "out.shape");
            Losses.scaleRegularizationLoss(replica(p, l), tensor(l, "loss"), out);
            came.put("out", Literals.of(out));
        });
    }

    private static void values() {
        value("value_create_tensor", (p, l) -> Value.createTensor(strategy(p, l), tensor(l, "tensor")));
        value("value_create_per_replica",
                (p, l) -> Value.createPerReplica(strategy(p, l), values(p, l, "items")));
        value("value_create_mirrored", (p, l) -> Value.createMirrored(strategy(p, l), values(p, l, "items")));
        value("value_create_list", (p, l) -> Value.createList(strategy(p, l), values(p, l, "items")));
        value("value_create_tuple", (p, l) -> Value.createTuple(strategy(p, l), values(p, l, "items")));
        value("value_create_dict", (p, l) -> {
            Map<String, Value> entries = new LinkedHashMap<>();
            List<Value> items = values(p, l, "items");
            List<String> keys = l.items("keys");
            for (int i = 0; i < keys.size(); i++) {
                entries.put(Literals.text(keys.get(i)), items.get(i));
            }
            return Value.createDict(strategy(p, l), entries);
        });
        value("value_create_none", (p, l) -> Value.createNone(strategy(p, l)));
        value("value_create_text", (p, l) -> Value.createText(strategy(p, l), l.text("text")));
        value("value_create_composite",
                (p, l) -> Value.createComposite(strategy(p, l), Codes.get(ValueKind.class, l.number("kind")),
                                values(p, l, "parts")));
        value("value_create_variable", (p, l) -> Value.createVariable(variable(p, l)));
        value("values_from_function", (p, l) -> Value.fromFunction(strategy(p, l), Functions.value(p, l)));
        value("value_item", (p, l) -> value(p, l, "value").item(l.number("index")).retain());
        value("value_get", (p, l) -> value(p, l, "value").get(l.text("key")).retain());
        object("value_container", (p, l) -> value(p, l, "value").container().orElse(null));
        value("strategy_local_results", (p, l) -> strategy(p, l).localResults(value(p, l, "value")));
    }

    private static void variables() {
        object("variable_create",
                (p, l) -> l.has("options.initial_fn")
                        ? Variable.create(strategy(p, l), Functions.initial(p, l), Options.variable(l))
                        : Variable.create(strategy(p, l), tensor(l, "initial"), Options.variable(l)));
        act("variable_destroy", (p, l) -> variable(p, l).close());
        object("replica_variable",
                (p, l) -> replica(p, l).variable(l.text("name"), tensor(l, "initial"), Options.variable(l)));
        text("variable_name", (p, l) -> variable(p, l).name());
        text("variable_class", (p, l) -> variable(p, l).variableClass());
        number("variable_synchronization", (p, l) -> Codes.of(variable(p, l).synchronization()));
        number("variable_aggregation", (p, l) -> Codes.of(variable(p, l).aggregation()));
        number("variable_num_copies", (p, l) -> variable(p, l).numCopies());
        text("variable_copy_name", (p, l) -> variable(p, l).copyName(l.number("copy")));
        text("variable_device", (p, l) -> variable(p, l).device(strategy(p, l), l.number("copy")));
        flag("variable_created_in_scope",
                (p, l) -> Variable.isCreatedInScope(strategy(p, l), value(p, l, "variable")));
        act("colocate_enter",
                (p, l) -> Functions.SCOPES.get().push(strategy(p, l).colocate(value(p, l, "variable"))));
        act("colocate_exit", (p, l) -> Functions.SCOPES.get().pop().close());
        ALL.put("variable_component",
                (p, l, came) ->
                        came.put("out", Literals.of(variable(p, l).component(l.number("replica_id")))));
        value("variable_read", (p, l) -> variable(p, l).read(strategy(p, l)));
        act("variable_assign", (p, l) -> variable(p, l).assign(strategy(p, l), how(l), value(p, l, "value")));
        value("replica_read", (p, l) -> variable(p, l).read(replica(p, l)));
        act("replica_assign", (p, l) -> variable(p, l).assign(replica(p, l), how(l), tensor(l, "value")));
        act("replica_assign_value",
                (p, l) -> variable(p, l).assign(
                                replica(p, l), how(l), value(p, l, "value"), CollectiveOptions.DEFAULT));
        act("replica_scatter",
                (p, l) -> variable(p, l).scatter(replica(p, l), Codes.get(Scatter.class, l.number("how")),
                                value(p, l, "slices"), CollectiveOptions.DEFAULT));
    }

    private static Assign how(Line l) {
        return Codes.get(Assign.class, l.number("how"));
    }

    private static void outside() {
        value("reduce",
                (p, l) -> strategy(p, l).reduce(op(l), value(p, l, "value"),
                                l.items("axes").stream().mapToInt(Integer::parseInt).toArray()));
        value("reduce_to",
                (p, l) -> strategy(p, l).reduceTo(
                                op(l), value(p, l, "value"), destination(p, l, "destination.")));
        ALL.put("batch_reduce_to", (p, l, came) -> {
            List<Value> values = values(p, l, "values");
            all(p, l, came, strategy(p, l).batchReduceTo(op(l), values, destinations(p, l, values.size())));
        });
        value("broadcast_to",
                (p, l) -> strategy(p, l).broadcastTo(
                                value(p, l, "value"), destination(p, l, "destination.")));
        value("gather", (p, l) -> strategy(p, l).gather(value(p, l, "value"), l.number("axis")));
        text("destination_device",
                (p, l) -> strategy(p, l).destinationDevice(destination(p, l, "destination.")));
        value("cross_device_reduce",
                (p, l) -> p.object(CrossDevice.class, l, "cross_device")
                                   .reduce(op(l), value(p, l, "value"), destination(p, l, "destination.")));
        ALL.put("cross_device_batch_reduce", (p, l, came) -> {
            List<Value> values = values(p, l, "values");
            all(p, l, came,
                    p.object(CrossDevice.class, l, "cross_device")
                            .batchReduce(op(l), values, destinations(p, l, values.size())));
        });
        value("cross_device_broadcast",
                (p, l) -> p.object(CrossDevice.class, l, "cross_device")
                                   .broadcast(value(p, l, "value"), destination(p, l, "destination.")));
        value("update",
                (p, l) -> variable(p, l).update(strategy(p, l), Functions.update(p, l), value(p, l, "args"),
                                value(p, l, "kwargs"), updateOptions(l)));
        value("replica_update",
                (p, l) -> variable(p, l).update(replica(p, l), Functions.update(p, l), value(p, l, "args"),
                                value(p, l, "kwargs"), updateOptions(l)));
    }

    private static UpdateOptions updateOptions(Line l) {
        return UpdateOptions.DEFAULT.ungrouped(l.number("options.ungrouped") != 0)
                .parallel(l.number("options.parallel") != 0);
    }

    private static void all(Player p, Line l, Map<String, String> came, List<Value> results) {
        for (int i = 0; i < results.size(); i++) {
            p.bindValue(l.answered, came, "out" + i, results.get(i));
        }
    }

    private static void input() {
        object("dataset_create_from_tensors",
                (p, l) -> Dataset.fromTensors(strategy(p, l),
                                l.items("tensors").stream().map(Literals::tensor).toList(),
                                Options.dataset(l)));
        object("dataset_create_from_callback",
                (p, l) -> Dataset.fromSource(strategy(p, l), Functions.source(p, l), Options.dataset(l)));
        object("dataset_create_from_files",
                (p, l) -> Dataset.fromFiles(strategy(p, l),
                                l.items("names").stream().map(Literals::text).toList(), Functions.file(p, l),
                                Options.dataset(l)));
        object("dataset_create_from_function",
                (p, l) -> Dataset.fromFunction(strategy(p, l), Functions.dataset(p, l), Options.dataset(l)));
        act("dataset_destroy", (p, l) -> p.object(Dataset.class, l, "dataset").close());
        value("dataset_element_spec", (p, l) -> p.object(Dataset.class, l, "dataset").elementSpec());
        number("input_context_per_replica_batch_size",
                (p, l) -> new InputContext(l.number("context.num_input_pipelines"),
                                l.number("context.input_pipeline_id"),
                                l.number("context.num_replicas_in_sync"))
                                   .perReplicaBatchSize(l.integer("global_batch_size")));
        ALL.put("batch_sizes_for_worker", (p, l, came) -> {
            long[] sizes = Dist.batchSizesForWorker(l.integer("global_batch_size"), l.number("num_workers"),
                    l.number("num_replicas_per_worker"), l.number("worker"));
            List<Long> all = new ArrayList<>();
            for (long size : sizes) {
                all.add(size);
            }
            came.put("out", Literals.array(all, Object::toString));
        });
        object("iterator_create", (p, l) -> p.object(Dataset.class, l, "dataset").iterator());
        value("iterator_next", (p, l) -> {
            BatchIterator pass = p.object(BatchIterator.class, l, "iterator");
            try {
                return pass.next();
            } catch (NoSuchElementException e) {
                return null; // as in C
            }
        });
        value("iterator_next_optional",
                (p, l) -> p.object(BatchIterator.class, l, "iterator").nextOptional().orElse(null));
        act("iterator_destroy", (p, l) -> p.object(BatchIterator.class, l, "iterator").close());
    }

    private static void scopes() {
        act("scope_enter", (p, l) -> Functions.SCOPES.get().push(strategy(p, l).scope()));
        act("scope_exit", (p, l) -> exit(strategy(p, l)));
        act("set_strategy", (p, l) -> Strategy.setCurrent(strategy(p, l)));
        object("get_strategy", (p, l) -> Strategy.current());
        flag("has_strategy", (p, l) -> Strategy.hasCurrent());
        flag("in_cross_replica_context", (p, l) -> Strategy.isInCrossReplicaContext());
        object("get_replica", (p, l) -> Replica.current());
    }

    private static void exit(Strategy strategy) {
        Scope latest = Functions.SCOPES.get().pop();
        latest.close();
    }

    static {
        NameCalls.addTo(ALL);
        MeshCalls.addTo(ALL);
        ClusterCalls.addTo(ALL);
        strategies();
        collectives();
        values();
        variables();
        outside();
        input();
        scopes();
    }
}
