// The Java client's part of `python -m bench latency`: the same records at the same rate as the Python clients, run as
// a source file.  Kafka's own perf test has the percentiles in whole milliseconds only.
import java.util.Arrays;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

public class Latency {
    public static void main(String[] arguments) throws Exception {
        String topic = arguments[1];
        int warmUp = Integer.parseInt(arguments[3]);
        int records = warmUp + Integer.parseInt(arguments[4]);
        double rate = Double.parseDouble(arguments[5]);
        Properties options = new Properties();
        options.put("bootstrap.servers", arguments[0]);
        options.put("linger.ms", arguments[2]);
        options.put("acks", "all");
        long[] taken = new long[records];
        AtomicInteger done = new AtomicInteger();
        double seconds;
        try (var producer = new KafkaProducer<>(options, new ByteArraySerializer(), new ByteArraySerializer())) {
            producer.partitionsFor(topic);
            long start = System.nanoTime();
            for (int number = 0; number < records; number++) {
                long ahead = start + (long) (number * 1e9 / rate) - System.nanoTime();
                if (ahead > 0) LockSupport.parkNanos(ahead);
                long begun = System.nanoTime();
                int mine = number;
                producer.send(new ProducerRecord<>(topic, new byte[100]), (metadata, error) -> {
                    if (error == null) {
                        taken[mine] = System.nanoTime() - begun;
                        done.incrementAndGet();
                    }
                });
            }
            seconds = (System.nanoTime() - start) / 1e9;
            producer.flush();
        }
        if (done.get() != records) throw new IllegalStateException(done + " of " + records + " were acknowledged");
        StringBuilder out = new StringBuilder("{\"seconds\": " + seconds + ", \"taken\": ");
        out.append(Arrays.toString(Arrays.copyOfRange(taken, warmUp, records))).append("}");
        System.out.println(out);
    }
}
