-- demo/alerts.sql for the replay of Compose, which sends the readings twenty times as fast as they were taken: every span
-- of time is a twentieth, and the rate is twenty times as high. Four motes measure humidity and temperature, two of them
-- indoors, two outdoors. Now and then steam was let in beside one mote (Suthaharan et al., demo/data/README.md).
-- max_delay: an edge holds a reading back for two seconds at most. Without it, omission would wait for up to 30 seconds.

CREATE STREAM readings (
  indoor      INT KEY CHECK (indoor IN (0, 1)),
  mote_id     INT NOT NULL CHECK (mote_id BETWEEN 1 AND 4),
  ts          TIMESTAMP,
  humidity    DOUBLE CHECK (humidity BETWEEN 1 AND 100),          -- percent
  temperature DOUBLE CHECK (temperature BETWEEN -40 AND 80),      -- degrees Celsius
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH (keys = 2, rate = '520/minute', max_stall = '2 minutes');

-- Dew point in degrees Celsius (Magnus formula).
CREATE FUNCTION dew_point(t DOUBLE, h DOUBLE) RETURNS DOUBLE AS
  243.04 * (ln(h / 100) + 17.625 * t / (243.04 + t)) / (17.625 - ln(h / 100) - 17.625 * t / (243.04 + t));

-- Humidex: how hot humid air feels (Masterton and Richardson, 1979).
CREATE FUNCTION humidex(t DOUBLE, h DOUBLE) RETURNS DOUBLE AS
  t + 0.5555 * (6.112 * exp(17.67 * t / (t + 243.5)) * h / 100 - 10);

-- Water condenses: the air beside one mote is so moist that its dew point lies above the temperature at the other.
CREATE ALERT condensation WITH (gap = '6 seconds', max_delay = '2 seconds', severity = 'critical') AS
SELECT damp.indoor, damp.ts, dew_point(damp.temperature, damp.humidity) AS dew_point, cold.temperature
FROM readings damp JOIN readings cold
  ON damp.indoor = cold.indoor
 AND cold.ts BETWEEN damp.ts - INTERVAL '6' SECOND AND damp.ts + INTERVAL '6' SECOND
WHERE damp.mote_id IN (1, 4) AND cold.mote_id IN (2, 3)
  AND dew_point(damp.temperature, damp.humidity) - cold.temperature > 0;

-- Heat stress in a place: the heat of its hottest mote with the humidity of its dampest, fifteen seconds apart at most.
CREATE ALERT heat_stress WITH (gap = '15 seconds', max_delay = '2 seconds', severity = 'warning') AS
SELECT hot.indoor, hot.ts, hot.temperature, damp.humidity,
       humidex(hot.temperature, damp.humidity) AS humidex
FROM readings hot JOIN readings damp
  ON hot.indoor = damp.indoor AND ABS(hot.ts - damp.ts) <= INTERVAL '15' SECOND
WHERE humidex(hot.temperature, damp.humidity) > 54;

-- One mote runs away from its neighbour: a source of heat beside it, or a failing sensor.
CREATE ALERT runaway WITH (gap = '6 seconds', max_delay = '2 seconds', severity = 'warning') AS
SELECT a.indoor, a.ts, a.mote_id, a.temperature - b.temperature AS difference
FROM readings a JOIN readings b
  ON a.indoor = b.indoor AND b.ts BETWEEN a.ts - INTERVAL '6' SECOND AND a.ts + INTERVAL '6' SECOND
WHERE a.mote_id IN (1, 4) AND b.mote_id IN (2, 3)
  AND a.temperature - b.temperature > 5;
