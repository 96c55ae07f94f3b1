# What is needed to build: all packages, and the sources.
FROM node:20-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --ignore-scripts --include=dev
COPY tsconfig.json tsconfig.build.json ./
COPY scripts ./scripts
COPY src ./src
RUN npm run build

# What is needed to run, and nothing else.
FROM node:20-slim AS packages
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --ignore-scripts --omit=dev

# The page, an image of its own: docker build --target page
FROM build AS page-build
COPY web ./web
RUN npm run build -- --page

FROM node:20-slim AS page
ENV NODE_ENV=production PORT=3000 HOSTNAME=0.0.0.0 WEB_HOST=0.0.0.0 HANDRAIL_URL=http://localhost:8000 NEXT_TELEMETRY_DISABLED=1
WORKDIR /app
COPY LICENSE ./
COPY --from=page-build /app/web/.next/standalone ./
USER node
EXPOSE 3000
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT}/icon.svg`).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["node"]
CMD ["server.js"]

# The server: what is built without --target.
FROM node:20-slim
ENV NODE_ENV=production HOST=0.0.0.0 PORT=8000 HANDRAIL_DATA=/data HANDRAIL_SPOOL=/data/spool
RUN mkdir -p -m 700 /data && chown node:node /data
WORKDIR /app
COPY package.json LICENSE ./
COPY --from=packages /app/node_modules ./node_modules
COPY --from=build /app/dist ./dist
USER node
VOLUME /data
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT}/healthz`).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
# Node is the first process of the container and takes SIGTERM itself; it starts no others.
ENTRYPOINT ["node", "dist/main.js"]
CMD ["serve"]
