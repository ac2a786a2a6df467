// SPDX-License-Identifier: Apache-2.0

package inference_host;

import ai.onnxruntime.NodeInfo;
import ai.onnxruntime.OnnxJavaType;
import ai.onnxruntime.OnnxTensor;
import ai.onnxruntime.OrtEnvironment;
import ai.onnxruntime.OrtException;
import ai.onnxruntime.OrtLoggingLevel;
import ai.onnxruntime.OrtSession;
import ai.onnxruntime.TensorInfo;
import java.nio.FloatBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import org.libdist.DistException;
import org.libdist.Status;

/**
 * A sentence encoder from an .onnx file in the format of sentence-transformers. Inputs: input_ids,
 * attention_mask and optionally token_type_ids; output: last_hidden_state. One ONNX Runtime session holds the
 * weights, packed once; any number of instances can run it at the same time, each on its own thread.
 */
final class Model implements AutoCloseable {
    static final int MOST_TOKENS = 256;

    private static final String IDS = "input_ids";
    private static final String MASK = "attention_mask";
    private static final String TYPES = "token_type_ids";
    private static final String ROWS = "last_hidden_state";
    private static final int MOST_OUTPUTS = 1024;
    // Errors are thrown as exceptions. Do not log them to standard error as well.
    private static final OrtEnvironment ENVIRONMENT =
            OrtEnvironment.getEnvironment(OrtLoggingLevel.ORT_LOGGING_LEVEL_FATAL, "inference_host");

    private final OrtSession session;
    private final int outputs;

    /** Token ids and, after {@link #encode}, their vector or an error. */
    static class Text {
        private final int[] ids;
        private float[] vector;
        private DistException failure;

        Text(int... ids) {
            this.ids = ids;
        }

        final int[] ids() {
            return ids;
        }

        final float[] vector() {
            return vector;
        }

        final DistException failure() {
            return failure;
        }
    }

    private Model(OrtSession session) throws OrtException {
        this.session = session;
        outputs = (int) axis(session.getOutputInfo().get(ROWS), 3, OnnxJavaType.FLOAT);
        Set<String> inputs = session.getInputNames();
        axis(session.getInputInfo().get(IDS), 2, OnnxJavaType.INT64);
        axis(session.getInputInfo().get(MASK), 2, OnnxJavaType.INT64);
        if (outputs < 1 || outputs > MOST_OUTPUTS || inputs.size() != (inputs.contains(TYPES) ? 3 : 2)) {
            throw new DistException(Status.INVALID_ARGUMENT, "the file's model is no encoder of sentences", null);
        }
    }

    /** Returns the size of a tensor's last axis, -1 if it is dynamic, or 0 if the tensor has another type. */
    private static long axis(NodeInfo node, int axes, OnnxJavaType type) {
        return node != null && node.getInfo() instanceof TensorInfo info && info.type == type
                        && info.getShape().length == axes
                ? info.getShape()[axes - 1]
                : 0;
    }

    /**
     * Opens a file and encodes a test input.
     *
     * @param like a model that must have the same sizes; may be null
     */
    static Model load(Path file, Model like) {
        if (!Files.isRegularFile(file)) {
            throw new DistException(Status.NOT_FOUND, "there is no file " + file, null);
        }
        OrtSession session = null;
        try (OrtSession.SessionOptions options = new OrtSession.SessionOptions()) {
            options.setIntraOpNumThreads(1); // the caller's thread
            options.setInterOpNumThreads(1);
            options.setMemoryPatternOptimization(false); // it would keep memory for each input shape
            session = ENVIRONMENT.createSession(file.toString(), options);
            Model model = new Model(session);
            if (like != null && like.outputs != model.outputs) {
                throw new DistException(
                        Status.INVALID_ARGUMENT, "the file's model has other sizes than the one that is served", null);
            }
            Text[] some = {new Text(0, 0, 0), new Text(0)};
            model.run(new Workspace(some.length, model.outputs), some);
            return model;
        } catch (OrtException | DistException e) {
            close(session);
            throw new DistException(Status.INVALID_ARGUMENT, file + ": " + e.getMessage(), e);
        }
    }

    private static void close(OrtSession session) {
        try {
            if (session != null) {
                session.close();
            }
        } catch (OrtException e) {
            throw new IllegalStateException(e);
        }
    }

    @Override
    public void close() {
        close(session);
    }

    int outputs() {
        return outputs;
    }

    /** Encodes texts together on this thread. If the model cannot encode a text, only that text fails. */
    void encode(Workspace workspace, Text[] texts) throws OrtException {
        try {
            run(workspace, texts);
        } catch (OrtException e) {
            if (e.getCode() != OrtException.OrtErrorCode.ORT_INVALID_ARGUMENT) {
                throw e;
            }
            if (texts.length == 1) {
                texts[0].failure =
                        new DistException(Status.INVALID_ARGUMENT, "the model has no such ids: " + e.getMessage(), e);
                return;
            }
            for (Text text : texts) {
                encode(workspace, new Text[] {text});
            }
        }
    }

    /** Makes the engine allocate what it needs for full batches of each length. */
    void warmUp(Workspace workspace, int texts, long[] lengths) throws OrtException {
        Text[] some = new Text[texts];
        for (long length : lengths) {
            Arrays.fill(some, new Text(new int[(int) length]));
            run(workspace, some);
        }
    }

    private void run(Workspace workspace, Text[] texts) throws OrtException {
        int longest = 0;
        for (Text text : texts) {
            longest = Math.max(longest, text.ids.length);
        }
        workspace.fill(texts, longest);
        FloatBuffer rows = workspace.rows(texts.length * longest * outputs);
        long[] shape = {texts.length, longest};
        try (OnnxTensor ids = OnnxTensor.createTensor(ENVIRONMENT, workspace.ids(), shape);
                OnnxTensor mask = OnnxTensor.createTensor(ENVIRONMENT, workspace.mask(), shape);
                OnnxTensor types = OnnxTensor.createTensor(ENVIRONMENT, workspace.types(), shape);
                OnnxTensor out = OnnxTensor.createTensor(
                        ENVIRONMENT, rows, new long[] {texts.length, longest, outputs})) {
            Map<String, OnnxTensor> inputs = new HashMap<>(Map.of(IDS, ids, MASK, mask, TYPES, types));
            inputs.keySet().retainAll(session.getInputNames());
            session.run(inputs, Map.of(ROWS, out)).close();
        }
        for (int i = 0; i < texts.length; i++) {
            texts[i].vector = pool(rows, i * longest * outputs, texts[i].ids.length);
        }
    }

    /** Returns the mean of the rows from position {@code at} on, normalized to length 1. */
    private float[] pool(FloatBuffer rows, int at, int tokens) {
        float[] mean = new float[outputs];
        double square = 0;
        for (int c = 0; c < outputs; c++) {
            float sum = 0;
            for (int i = 0; i < tokens; i++) {
                sum += rows.get(at + i * outputs + c);
            }
            mean[c] = sum / tokens;
            square += (double) mean[c] * mean[c];
        }
        float factor = square > 0 ? (float) (1 / Math.sqrt(square)) : 0;
        for (int c = 0; c < outputs; c++) {
            mean[c] *= factor;
        }
        return mean;
    }
}
