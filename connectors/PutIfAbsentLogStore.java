package slackwater;

import io.delta.storage.HadoopFileSystemLogStore;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.Iterator;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FSDataOutputStreamBuilder;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.PathIOException;

/**
 * Delta's log where no commit may replace another one, whichever program wrote that.
 *
 * Delta's own log stores look whether an entry exists and then write it, which is safe within one
 * JVM only. Here the storage itself refuses: S3 by a conditional PUT, a file system by a hard link.
 */
public class PutIfAbsentLogStore extends HadoopFileSystemLogStore {

    private static final String CONDITIONAL = "fs.option.create.conditional.overwrite";

    public PutIfAbsentLogStore(Configuration conf) {
        super(conf);
    }

    @Override
    public void write(Path path, Iterator<String> actions, Boolean overwrite, Configuration conf)
            throws IOException {
        StringBuilder lines = new StringBuilder();
        while (actions.hasNext()) {
            lines.append((String) actions.next()).append('\n');
        }
        byte[] content = lines.toString().getBytes(StandardCharsets.UTF_8);
        FileSystem files = path.getFileSystem(conf);
        if (overwrite.booleanValue()) {
            put(files.create(path, true), content);
        } else if ("file".equals(files.getUri().getScheme())) {
            link(files, path, content);
        } else {
            putIfAbsent(files, path, content);
        }
    }

    private void link(FileSystem files, Path path, byte[] content) throws IOException {
        Path fresh = createTempPath(path);
        put(files.create(fresh, false), content);
        try {
            Files.createLink(Paths.get(path.toUri().getPath()), Paths.get(fresh.toUri().getPath()));
        } finally {
            files.delete(fresh, false);
        }
    }

    private void putIfAbsent(FileSystem files, Path path, byte[] content) throws IOException {
        FSDataOutputStreamBuilder builder = files.createFile(path);
        builder.overwrite(false);
        builder.must(CONDITIONAL, true);
        try {
            put((FSDataOutputStream) builder.build(), content);
        } catch (PathIOException error) {
            FileAlreadyExistsException exists = new FileAlreadyExistsException(path.toString());
            exists.initCause(error);
            throw exists;
        }
    }

    private static void put(FSDataOutputStream stream, byte[] content) throws IOException {
        try {
            stream.write(content);
        } finally {
            stream.close();
        }
    }

    @Override
    public Boolean isPartialWriteVisible(Path path, Configuration conf) {
        return Boolean.FALSE;
    }
}
