CREATE STREAM air (
  station VARCHAR KEY,
  ts      TIMESTAMP,
  temp    DOUBLE CHECK (temp BETWEEN -60 AND 70),   -- the declared domain: proofs rest on it, edges enforce it
  rh      DOUBLE CHECK (rh BETWEEN 1 AND 100),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH (keys = 1000, rate = '10/s', max_stall = '5 minutes');

CREATE STREAM surface (
  station VARCHAR KEY,
  ts      TIMESTAMP,
  temp    DOUBLE CHECK (temp BETWEEN -60 AND 70),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH (keys = 1000, rate = '10/s', max_stall = '5 minutes');

CREATE FUNCTION dew_point(t DOUBLE, h DOUBLE) RETURNS DOUBLE AS
  243.04 * (ln(h/100) + 17.625*t/(243.04+t)) / (17.625 - ln(h/100) - 17.625*t/(243.04+t));

CREATE ALERT condensation WITH (max_delay = '5 seconds') AS
SELECT a.station, a.ts, dew_point(a.temp, a.rh) AS dew, s.temp AS surface
FROM air a JOIN surface s
  ON a.station = s.station AND s.ts BETWEEN a.ts - INTERVAL '30' SECOND AND a.ts + INTERVAL '30' SECOND
WHERE dew_point(a.temp, a.rh) - s.temp > 0.5;
