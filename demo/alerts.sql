-- Four motes measure humidity and temperature every five seconds, two of them indoors, two outdoors.
-- Now and then steam was let in beside one mote (Suthaharan et al., demo/data/README.md).

CREATE STREAM readings (
  indoor      INT KEY CHECK (indoor IN (0, 1)),
  mote_id     INT NOT NULL CHECK (mote_id BETWEEN 1 AND 4),
  ts          TIMESTAMP,
  humidity    DOUBLE CHECK (humidity BETWEEN 1 AND 100),          -- percent
  temperature DOUBLE CHECK (temperature BETWEEN -40 AND 80),      -- degrees Celsius
  WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
) WITH (keys = 2, rate = '26/minute', max_stall = '10 minutes');

-- Dew point in degrees Celsius (Magnus formula).
CREATE FUNCTION dew_point(t DOUBLE, h DOUBLE) RETURNS DOUBLE AS
  243.04 * (ln(h / 100) + 17.625 * t / (243.04 + t)) / (17.625 - ln(h / 100) - 17.625 * t / (243.04 + t));

-- Humidex: how hot humid air feels (Masterton and Richardson, 1979).
CREATE FUNCTION humidex(t DOUBLE, h DOUBLE) RETURNS DOUBLE AS
  t + 0.5555 * (6.112 * exp(17.67 * t / (t + 243.5)) * h / 100 - 10);

-- Water condenses: air at one mote is so moist that its dew point lies above the temperature at the other.
CREATE ALERT condensation WITH (gap = '2 minutes', severity = 'critical') AS
SELECT damp.indoor, damp.ts, damp.mote_id AS damp_mote, cold.mote_id AS cold_mote,
       dew_point(damp.temperature, damp.humidity) AS dew_point, cold.temperature AS temperature
FROM readings damp JOIN readings cold
  ON damp.indoor = cold.indoor AND damp.mote_id <> cold.mote_id
 AND cold.ts BETWEEN damp.ts - INTERVAL '30' SECOND AND damp.ts + INTERVAL '30' SECOND
WHERE dew_point(damp.temperature, damp.humidity) - cold.temperature > 0;

-- Heat stress anywhere in a room: the heat of its hottest mote with the humidity of its dampest, half a minute apart at most.
CREATE ALERT heat_stress WITH (gap = '2 minutes', severity = 'warning', max_delay = '1 second') AS
SELECT hot.indoor, hot.ts, hot.temperature, damp.humidity, humidex(hot.temperature, damp.humidity) AS humidex
FROM readings hot JOIN readings damp
  ON hot.indoor = damp.indoor AND ABS(hot.ts - damp.ts) <= INTERVAL '30' SECOND
WHERE humidex(hot.temperature, damp.humidity) > 50;

-- One mote runs away from its neighbour: a source of heat beside it, or a failing sensor.
CREATE ALERT runaway WITH (gap = '2 minutes', severity = 'warning') AS
SELECT a.indoor, a.ts, a.mote_id AS hot_mote, a.temperature - b.temperature AS difference
FROM readings a JOIN readings b
  ON a.indoor = b.indoor AND b.ts BETWEEN a.ts - INTERVAL '10' SECOND AND a.ts + INTERVAL '10' SECOND
WHERE a.mote_id IN (1, 4) AND b.mote_id IN (2, 3)
  AND a.temperature - b.temperature > 5;
