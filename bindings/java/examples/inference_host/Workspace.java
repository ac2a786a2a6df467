// SPDX-License-Identifier: Apache-2.0

package inference_host;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.nio.LongBuffer;

/** The buffers of an instance: the engine reads a batch's ids from them and writes its rows to them. */
final class Workspace {
    private final LongBuffer ids;
    private final LongBuffer mask; // 1 for an id, 0 for padding
    private final LongBuffer types; // all 0
    private final FloatBuffer rows;

    /** For up to {@code texts} texts of any length, and models with {@code outputs} numbers per row. */
    Workspace(int texts, int outputs) {
        int tokens = texts * Model.MOST_TOKENS;
        ids = direct(tokens * Long.BYTES).asLongBuffer();
        mask = direct(tokens * Long.BYTES).asLongBuffer();
        types = direct(tokens * Long.BYTES).asLongBuffer();
        rows = direct(tokens * outputs * Float.BYTES).asFloatBuffer();
    }

    private static ByteBuffer direct(int bytes) {
        return ByteBuffer.allocateDirect(bytes).order(ByteOrder.nativeOrder());
    }

    /** Copies the texts' ids into the buffers, {@code longest} positions per text. */
    void fill(Model.Text[] texts, int longest) {
        ids.clear();
        mask.clear();
        for (Model.Text text : texts) {
            for (int i = 0; i < longest; i++) {
                boolean some = i < text.ids().length;
                ids.put(some ? text.ids()[i] : 0);
                mask.put(some ? 1 : 0);
            }
        }
        ids.flip();
        mask.flip();
        types.limit(ids.limit());
    }

    LongBuffer ids() {
        return ids;
    }

    LongBuffer mask() {
        return mask;
    }

    LongBuffer types() {
        return types;
    }

    FloatBuffer rows(int size) {
        return rows.clear().limit(size);
    }
}
